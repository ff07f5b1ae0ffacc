"""The columns of records, as the engine gets them: single, or merged where they were read."""

from __future__ import annotations

import polars as pl

#: Columns that records have for every spec.
COLUMNS: dict[str, pl.DataType] = {
    "stream": pl.Int64(), "version": pl.Int32(), "key": pl.String(), "source": pl.Int32(), "txid": pl.Int64(),
    "id": pl.Int64(), "created_us": pl.Int64(), "event_us": pl.Int64(),
}  # fmt: skip
#: Columns of records that were merged where they were read (merging.py), beside the parts of their spec.
MERGED = ("count", "first", "last")


def is_merged(records: pl.DataFrame) -> bool:
    """Whether these are records that were merged where they were read."""
    return set(MERGED) <= set(records.columns)


def records_in(records: pl.DataFrame) -> int:
    """How many records there are, merged ones included."""
    return int(records["count"].sum()) if is_merged(records) else records.height
