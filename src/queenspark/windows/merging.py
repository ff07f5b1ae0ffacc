"""Records merged before they travel to their bucket: one part row instead of many records.

The records of a key that follow each other and lie in the same pane share the fate of the first one: what
comes before them decides whether their windows are closed, and none of them closes a window of its own. So
they can be merged where they are read, and the engine gets part rows. Two things it cannot tell from a part
row: the single records of a window that is closed already, which make a revision each (`RecordsNeeded`), and
times of arrival that differ. Emission of changes needs every record as well.
"""

from __future__ import annotations

from math import gcd

import polars as pl

from .layout import layout_of
from .record_columns import COLUMNS, MERGED
from .spec import WindowSpec

FEWEST = 1_000
"""Fewer records are not worth it."""
LEAST_SHARE = 2
"""Records for each part row, at least."""


class Merging:
    """Merges the records of one stream that arrived at the same time."""

    def __init__(self, spec: WindowSpec) -> None:
        self._layout = layout_of(spec)
        self._pane = gcd(spec.duration, spec.slide)

    @classmethod
    def of(cls, spec: WindowSpec | None) -> Merging | None:
        """Where merging changes nothing, None elsewhere."""
        if spec is None or spec.emission != "final" or spec.emit_empty:
            return None
        timed = spec.kind in ("tumbling", "sliding") and spec.clock == "event"
        return cls(spec) if timed or (spec.kind == "group" and spec.ttl_us is None) else None

    def merged(self, records: pl.DataFrame) -> list[pl.DataFrame]:
        """The records as part rows, and single ones where that is not possible or brings nothing."""
        height = records.height
        if height < FEWEST or _keys(records) * LEAST_SHARE > height:
            return [records]
        codes = records["key"].cast(pl.Categorical(pl.Categories.random())).to_physical()
        rows = self._layout.parted(records).with_columns(codes.alias("k"))
        is_sorted = not self._pane or records["event_us"].is_sorted()
        by = ["k"]
        if self._pane:
            rows = rows.with_columns(pane=pl.col("event_us") // self._pane)
            by.append("pane")
        once = ("stream", "version", "key", "txid", "id")
        found = self._layout.merge(
            rows, by, *(pl.col(name).first() for name in (*once, "source")),
            pl.col("created_us").max(), pl.col("event_us").max(),
        )  # fmt: skip
        if found.height * LEAST_SHARE > height:
            return [records]
        columns = [*COLUMNS, *MERGED, *self._layout.columns]
        if is_sorted:
            return [found.select(columns)]
        mixed = _interleaved(found)
        single = records.filter(codes.is_in(mixed.implode()))
        parts = found.filter(~pl.col("k").is_in(mixed.implode())).select(columns)
        return [frame for frame in (parts, single) if not frame.is_empty()]


def _keys(records: pl.DataFrame) -> int:
    """About how many keys there are."""
    return int(records.select(pl.col("key").approx_n_unique()).item())


def _interleaved(rows: pl.DataFrame) -> pl.Series:
    """The keys whose records go back and forth between panes."""
    ordered = rows.select("k", "first", "last").sort("k", "first")
    same = pl.col("k") == pl.col("k").shift(1)
    return ordered.filter(same & (pl.col("first") < pl.col("last").shift(1)))["k"].unique()
