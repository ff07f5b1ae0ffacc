"""Late records, and windows that are due."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from .directory import stream_of


class Judged(NamedTuple):
    """Records that came when their window was closed, and those of them that were dropped."""

    late: pl.DataFrame
    dropped: pl.DataFrame


def due(table: pl.DataFrame, closed: pl.DataFrame, keep: int) -> tuple[pl.DataFrame, pl.DataFrame] | None:
    """Part the windows that end at or before the mark of their key (or stream) minus `keep` from the others.

    None when there are none, which is found out without looking at the keys.
    """
    if table.is_empty() or closed.is_empty():
        return None
    last = int(closed["closed"].max()) - keep  # type: ignore[arg-type]
    if int(table["end"].min()) > last:  # type: ignore[arg-type]
        return None
    if "g" in closed.columns:
        if closed.height == 1:
            is_due = pl.col("end") <= last
            return table.filter(is_due), table.filter(~is_due)
        marked = (
            table.with_columns(g=stream_of(pl.col("k")))
            .join(closed, on="g", how="left", maintain_order="left")
            .drop("g")
        )
    else:
        marked = table.join(closed, on="k", how="left", maintain_order="left")
    is_due = (pl.col("end") <= pl.col("closed") - keep).fill_null(False)
    found = marked.filter(is_due).drop("closed")
    if found.is_empty():
        return None
    return found, marked.filter(~is_due).drop("closed")
