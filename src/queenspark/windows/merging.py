"""Merges records where they are read, so that one part row is shuffled instead of many records.

Consecutive records of a key in the same pane are treated alike: only earlier records determine whether their
windows are closed, and none of them closes a window itself. So they can be merged before the shuffle, and the
engine gets part rows. A part row loses the individual records, which a closed window needs because each makes
a revision (`RecordsNeeded`), and differing arrival times. Emitting changes needs every record, too.
"""

from __future__ import annotations

from math import gcd

import polars as pl

from .layout import layout_of
from .record_columns import COLUMNS, MERGED
from .spec import WindowSpec

FEWEST = 1_000
"""The fewest records worth merging."""
LEAST_SHARE = 2
"""The minimum number of records per part row."""


class Merging:
    """Merges the records of one stream that arrived at the same time."""

    def __init__(self, spec: WindowSpec) -> None:
        self._layout = layout_of(spec)
        self._pane = gcd(spec.duration, spec.slide)

    @classmethod
    def of(cls, spec: WindowSpec | None) -> Merging | None:
        """Return the merging of a spec, or None if merging would change the result."""
        if spec is None or spec.emission != "final" or spec.emit_empty:
            return None
        timed = spec.kind in ("tumbling", "sliding") and spec.clock == "event"
        return cls(spec) if timed or (spec.kind == "group" and spec.ttl_us is None) else None

    def merged(self, records: pl.DataFrame) -> list[pl.DataFrame]:
        """Return the records as part rows, or unmerged where merging is impossible or not worthwhile."""
        height = records.height
        if height < FEWEST or _keys(records) * LEAST_SHARE > height:
            return [records]
        codes = records["key"].cast(pl.Categorical(pl.Categories.random())).to_physical()
        rows = self._layout.parted(records).with_columns(codes.alias("k"))
        is_sorted = not self._pane or records["event_us"].is_sorted()
        cell = codes if not self._pane else _cells(codes, records["event_us"] // self._pane)
        rows = rows.with_columns(cell.alias("cell"))
        once = ("stream", "version", "key", "txid", "id")
        found = self._layout.merge(
            rows, ["cell"], *(pl.col(name).first() for name in (*once, "source", "k")),
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


def _cells(codes: pl.Series, panes: pl.Series) -> pl.Series:
    """Number the pairs of key and pane: grouping by one small integer is twice as fast as by two columns."""
    numbers = panes - panes.min()
    if (_most(codes) + 1) * (_most(numbers) + 1) >= 2**32:  # times that are far apart
        numbers = panes.rank("dense").cast(pl.Int64)
    width = _most(numbers) + 1
    dtype = pl.UInt32 if (_most(codes) + 1) * width < 2**32 else pl.Int64
    return codes.cast(dtype) * width + numbers.cast(dtype)


def _most(numbers: pl.Series) -> int:
    return int(numbers.max())  # type: ignore[arg-type]  # they are not empty


def _keys(records: pl.DataFrame) -> int:
    """Estimate the number of keys."""
    return int(records.select(pl.col("key").approx_n_unique()).item())


def _interleaved(rows: pl.DataFrame) -> pl.Series:
    """Return the keys whose records alternate between panes."""
    ordered = rows.select("k", "first", "last").sort("k", "first")
    same = pl.col("k") == pl.col("k").shift(1)
    return ordered.filter(same & (pl.col("first") < pl.col("last").shift(1)))["k"].unique()
