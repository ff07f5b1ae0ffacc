"""The options of a file source."""

from __future__ import annotations

from typing import Literal

import msgspec

_SUFFIXES = {".json": "json", ".jsonl": "json", ".ndjson": "json", ".csv": "csv", ".tsv": "csv",
             ".parquet": "parquet", ".txt": "text", ".log": "text"}  # fmt: skip

CSV_ONLY = frozenset({"header", "delimiter"})
"""Options that other formats do not have."""


class FileOptions(msgspec.Struct, frozen=True):
    """Options as given in the statement; see docs/files.md."""

    path: str
    format: Literal["json", "csv", "parquet", "text"] = "json"
    mode: Literal["stream", "once"] = "stream"
    header: Literal["true", "false"] = "true"
    delimiter: str = ","

    @classmethod
    def of(cls, options: dict[str, str]) -> FileOptions:
        """Parse the options of a statement. The default format follows from the path's suffix."""
        return msgspec.convert({"format": _format_of(options["path"]), **options}, cls)


def _format_of(path: str) -> str:
    name = path.lower()
    for suffix in (".gz", ".zst", ".zstd", ".bz2", ".lz4"):
        name = name.removesuffix(suffix)
    return next((found for suffix, found in _SUFFIXES.items() if name.endswith(suffix)), "json")
