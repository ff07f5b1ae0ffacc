"""Transport of rows from a job's stateful operator to its sink, many per value."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

import polars as pl
import pyarrow as pa

from ..spark.worker import prepare_worker

OUTPUT = "rows binary"
"""The column of emitted rows, next to the figures of a bucket."""

Emit = Callable[[pl.DataFrame], Iterator[bytes]]
"""Turns the rows of a batch in one bucket into values for the sink; pickled into tasks."""

_PACKED_ROWS = 50_000

#: Metadata of each row, for sinks that support it.
ABOUT = ("key", "transaction_id", "headers")


def packed_rows(rows: pl.DataFrame) -> Iterator[bytes]:
    """Pack rows. `payload` has their columns, as a struct for files and as JSON otherwise."""
    for part in rows.iter_slices(_PACKED_ROWS):
        file = io.BytesIO()
        part.select(*ABOUT, "payload").write_ipc_stream(file, compression="lz4")
        yield file.getvalue()


def unpacked_rows(packed: pa.Array) -> Iterator[pl.DataFrame]:
    """Unpack rows."""
    for value in packed:
        if value.is_valid:
            yield pl.read_ipc_stream(value.as_buffer().to_pybytes())


def to_columns(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Unpack only the columns of rows, for `mapInArrow`."""
    prepare_worker()
    for batch in batches:
        for rows in unpacked_rows(batch.column("rows")):
            table = rows.select(pl.col("payload").struct.unnest()).to_arrow(
                compat_level=pl.CompatLevel.oldest()
            )
            yield from table.to_batches()
