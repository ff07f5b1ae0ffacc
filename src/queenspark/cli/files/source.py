"""A file to import: its format, its records, and how much of it is read."""

import gzip
import io
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

from queenspark.cli.exits import Exit, Failure
from queenspark.cli.files.lines import Lines
from queenspark.cli.files.records import CsvRows, Records, json_lines, text_lines

FORMATS = {
    "json": (".jsonl", ".ndjson", ".json"),
    "csv": (".csv", ".tsv"),
    "text": (".txt", ".log"),
    "parquet": (".parquet",),
}
STDIN = "-"


class Source(Protocol):
    """Records of one file. Offsets are in bytes, in Parquet in rows."""

    @property
    def offset(self) -> int:
        """The end of the last record."""
        ...

    @property
    def number(self) -> int:
        """The number of the last line or row."""
        ...

    @property
    def header(self) -> list[str]:
        """The columns of CSV."""
        ...

    def digest(self) -> str:
        """Identifies the file's content up to the offset."""
        ...

    def skip(self, offset: int, number: int, digest: str) -> bool:
        """Read to an offset; whether the file is the same up to there, and a record can begin."""
        ...

    def records(self) -> Records:
        """The records from there on. Failure when the file cannot be read."""
        ...

    def bytes_read(self) -> int:
        """How much of the file is read, as it lies on disk."""
        ...


class LineSource:
    """Records that are made of lines."""

    def __init__(
        self,
        name: str,
        stream: BinaryIO,
        reader: Callable[[Lines], Records],
        read: Callable[[], int] | None = None,
    ) -> None:
        self._name = name
        self._lines = Lines(stream)
        self._reader = reader
        self._read = read

    @property
    def offset(self) -> int:
        """The end of the last record."""
        return self._lines.offset

    @property
    def number(self) -> int:
        """The number of the last line."""
        return self._lines.number

    @property
    def header(self) -> list[str]:
        """The columns of CSV."""
        return self._reader.header if isinstance(self._reader, CsvRows) else []

    def digest(self) -> str:
        """The SHA-256 of the bytes up to the offset."""
        return self._lines.digest()

    def skip(self, offset: int, number: int, digest: str) -> bool:
        """Read to an offset; whether the file is the same up to there, and a record can begin."""
        with _readable(self._name):
            return self._lines.skip(offset, number, digest)

    def records(self) -> Records:
        """The records from there on. Failure when the file cannot be read."""
        with _readable(self._name):
            yield from self._reader(self._lines)

    def bytes_read(self) -> int:
        """How much of the file is read, as it lies on disk."""
        return self._lines.offset if self._read is None else self._read()


@contextmanager
def open_source(name: str, kind: str, *, strings: bool, header: list[str]) -> Iterator[Source]:
    """A file, or standard input, as records."""
    reader: Callable[[Lines], Records]
    if kind == "parquet":
        from queenspark.cli.files.parquet import ParquetSource

        yield ParquetSource(name)
        return
    if kind == "csv":
        delimiter = "\t" if ".tsv" in Path(name).suffixes else ","
        reader = CsvRows(delimiter=delimiter, strings=strings, header=header)
    else:
        reader = json_lines if kind == "json" else text_lines
    if name == STDIN:
        yield LineSource(name, sys.stdin.buffer, reader)
        return
    with _readable(name):
        file = Path(name).open("rb")  # noqa: SIM115 - closed below
    with file:
        if not name.endswith(".gz"):
            yield LineSource(name, file, reader)
            return
        with gzip.GzipFile(fileobj=file) as unpacked:
            yield LineSource(name, io.BufferedReader(unpacked), reader, file.tell)


def format_of(name: str, given: str | None) -> str:
    """The format of a file, by its suffix unless it is given."""
    if given is not None:
        return given
    if name == STDIN:
        return "json"
    plain = name.removesuffix(".gz")
    for kind, suffixes in FORMATS.items():
        if plain.endswith(suffixes):
            return kind
    raise Failure(
        f"Cannot tell the format from the name {name}: pass --format {'|'.join(FORMATS)}.", Exit.USAGE
    )


def size_of(name: str) -> int | None:
    """The bytes of a file, None for standard input and other streams."""
    with _readable(name):
        found = None if name == STDIN else Path(name).stat()
    return found.st_size if found is not None and os.path.isfile(name) else None


@contextmanager
def _readable(name: str) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Failure(f"Cannot read {name}: {reason}.") from None
