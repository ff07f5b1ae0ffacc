"""Parquet files: reading rows for an import, writing one from an export's lines."""

import hashlib
import math
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from queenspark.cli.exits import Exit, Failure
from queenspark.cli.files.records import Record, Records

_ENCODER = msgspec.json.Encoder(decimal_format="number")
_BATCH_ROWS = 5_000
_FOOTER_BYTES = 64 * 1024


class ParquetSource:
    """The rows of a Parquet file as JSON objects. The offset is the number of a row."""

    def __init__(self, name: str) -> None:
        with needs_extra():
            import pyarrow.parquet
        self._name = name
        try:
            self._file = pyarrow.parquet.ParquetFile(name)
        except (OSError, pyarrow.ArrowException) as error:
            raise Failure(f"Cannot read {name} as Parquet: {error}.") from None
        self._size = Path(name).stat().st_size
        self._rows = max(1, self._file.metadata.num_rows)
        self._digest = _footer_digest(name)
        self.offset = 0
        self.number = 0
        self.header: list[str] = []

    def digest(self) -> str:
        """The SHA-256 of the end of the file, which describes all of it."""
        return self._digest

    def skip(self, offset: int, number: int, digest: str) -> bool:
        """Go to a row; whether it is the same file."""
        self.offset, self.number = offset, number
        return digest == self._digest

    def records(self) -> Records:
        """The rows from there on."""
        import pyarrow

        first = 0
        try:
            for batch in self._file.iter_batches(_BATCH_ROWS):
                skipped = max(0, self.offset - first)
                first += batch.num_rows
                for row in batch.slice(skipped).to_pylist() if skipped < batch.num_rows else []:
                    offset, self.offset = self.offset, self.offset + 1
                    self.number = self.offset
                    fields = _ready(row)
                    yield Record(self.number, offset, msgspec.Raw(_ENCODER.encode(fields)), fields)
        except (OSError, pyarrow.ArrowException) as error:
            raise Failure(f"Cannot read {self._name}: {error}.") from None

    def bytes_read(self) -> int:
        """How much of the file is read, going by rows."""
        return int(self._size * self.offset // self._rows)


def write_parquet(lines: Path, target: Path) -> None:
    """Make a Parquet file of JSON lines; its columns fit all of them."""
    with needs_extra():
        import polars
    try:
        frame = polars.scan_ndjson(lines, infer_schema_length=None)
        frame.sink_parquet(target, mkdir=False)
    except polars.exceptions.PolarsError as error:
        raise Failure(
            f"The messages do not fit the columns of one Parquet file: {error}. Export them as json."
        ) from None


@contextmanager
def needs_extra() -> Iterator[None]:
    """One sentence when the packages for Parquet are not installed."""
    try:
        yield
    except ImportError:
        raise Failure(
            "Parquet needs the packages of the server; install them with: pip install 'queenspark[server]'",
            Exit.USAGE,
        ) from None


def _footer_digest(name: str) -> str:
    with Path(name).open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _FOOTER_BYTES))
        return hashlib.sha256(f"{size} ".encode() + file.read()).hexdigest()


def _ready(value: Any) -> Any:
    """A value as a row of SQL has it: times are UTC, NaN and Infinity are strings."""
    if isinstance(value, float):
        return (
            value
            if math.isfinite(value)
            else "NaN"
            if math.isnan(value)
            else f"{value}".replace("inf", "Infinity")
        )
    if isinstance(value, datetime):
        moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
    if isinstance(value, dict):
        return {name: _ready(part) for name, part in value.items()}
    return [_ready(part) for part in value] if isinstance(value, list) else value
