"""Reads row ranges and column subsets of Parquet files."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
import pyarrow as pa
from pyarrow import parquet as pq

BATCH_ROWS = 250_000


class Parquet:
    """A Parquet file."""

    def __init__(self, source: pa.NativeFile) -> None:
        """Raises ArrowInvalid if the file is not Parquet."""
        self._file = pq.ParquetFile(source)
        metadata = self._file.metadata
        self.rows: int = metadata.num_rows
        self._groups = [
            (metadata.row_group(number).num_rows, metadata.row_group(number).total_byte_size)
            for number in range(metadata.num_row_groups)
        ]

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""
        return self._file.schema_arrow

    def bytes_of(self, start: int, end: int) -> int:
        """Estimate the uncompressed size of a row range in bytes."""
        return sum(size * (high - low) // rows for low, high, rows, size in self._within(start, end))

    def read(self, start: int, end: int, names: list[str]) -> Iterator[tuple[int, pl.DataFrame]]:
        """Yield a row range of these columns in parts, each with the number of its first row."""
        present = [name for name in names if name in self._file.schema_arrow.names]
        groups: list[int] = []
        first = 0
        at = 0
        for number, (rows, _) in enumerate(self._groups):
            if at < end and at + rows > start:
                first = at if not groups else first
                groups.append(number)
            at += rows
        at = first
        for batch in self._file.iter_batches(BATCH_ROWS, row_groups=groups, columns=present):
            low, high = max(start - at, 0), min(end - at, batch.num_rows)
            if low < high:
                part = batch.slice(low, high - low)
                frame = pl.DataFrame(pl.from_arrow(part)) if present else pl.DataFrame(height=part.num_rows)
                yield at + low, frame
            at += batch.num_rows

    def _within(self, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        at = 0
        for rows, size in self._groups:
            low, high = max(start, at), min(end, at + rows)
            if low < high:
                yield low, high, rows, size
            at += rows
