"""The columns of the engine's input: single records, or part rows merged where they were read."""

from __future__ import annotations

import polars as pl

#: Columns of records, for any spec.
COLUMNS: dict[str, pl.DataType] = {
    "stream": pl.Int64(), "version": pl.Int32(), "key": pl.String(), "source": pl.Int32(), "txid": pl.Int64(),
    "id": pl.Int64(), "created_us": pl.Int64(), "event_us": pl.Int64(),
}  # fmt: skip
#: Additional columns of merged records (merging.py), next to the parts of their spec.
MERGED = ("count", "first", "last")


def is_merged(records: pl.DataFrame) -> bool:
    """Return whether these records are merged."""
    return set(MERGED) <= set(records.columns)


def records_in(records: pl.DataFrame) -> int:
    """Return the number of records, counting merged ones individually."""
    return int(records["count"].sum()) if is_merged(records) else records.height
