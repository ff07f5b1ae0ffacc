"""Rows on their way from the stateful step of a job to its sink, many in one value."""

from __future__ import annotations

import io
from collections.abc import Iterator

import polars as pl
import pyarrow as pa

OUTPUT = "rows binary"
"""The column that has them, beside the figures of a bucket."""

#: Of each row beside its columns: its key, its id and its headers, for sinks that can tell them.
ABOUT = ("key", "transaction_id", "headers")


def packed_rows(rows: pl.DataFrame) -> bytes:
    """Rows, of which `payload` has the columns: as a struct for files, else as JSON."""
    file = io.BytesIO()
    rows.select(*ABOUT, "payload").write_ipc_stream(file, compression="lz4")
    return file.getvalue()


def unpacked_rows(packed: pa.Array) -> Iterator[pl.DataFrame]:
    """The rows again."""
    for value in packed:
        if value.is_valid:
            yield pl.read_ipc_stream(value.as_buffer().to_pybytes())


def to_columns(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow`: the columns of packed rows, and nothing else."""
    for batch in batches:
        for rows in unpacked_rows(batch.column("rows")):
            table = rows.select(pl.col("payload").struct.unnest()).to_arrow(
                compat_level=pl.CompatLevel.oldest()
            )
            yield from table.to_batches()
