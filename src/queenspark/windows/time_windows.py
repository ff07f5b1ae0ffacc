"""Tumbling and sliding windows."""

from __future__ import annotations

from math import gcd

import polars as pl

from .closing import ClosingWindows, append
from .directory import Directory
from .empty import EmptyWindows
from .late import Judged
from .layout import KEY, WINDOW, Layout


class TimeWindows(ClosingWindows):
    """Open and sealed windows of one spec. Rows of the same window are merged when they are needed."""

    def __init__(
        self,
        layout: Layout,
        directory: Directory,
        open_: pl.DataFrame | None,
        sealed: pl.DataFrame | None,
        records: pl.DataFrame,
        empty: EmptyWindows | None,
    ) -> None:
        super().__init__(layout, directory, open_, sealed)
        self._duration, self._slide = layout.spec.duration, layout.spec.slide
        self.empty = empty
        self._no_rows = records.clear().with_columns(start=pl.col("t"), end=pl.col("t"))

    def behind(self) -> pl.Expr:
        """Whether a record has a window that is closed already."""
        first_start = (pl.col("t") - self._duration) // self._slide * self._slide + self._slide
        return first_start + self._duration <= pl.col("closed")

    def _expand(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Each row once for each window that contains its time."""
        last = pl.col("t") // self._slide * self._slide
        if self._slide == self._duration:
            rows = rows.with_columns(start=last)
        else:
            first = (pl.col("t") - self._duration) // self._slide * self._slide + self._slide
            rows = rows.with_columns(start=pl.int_ranges(first, last + self._slide, self._slide)).explode(
                "start"
            )
        return rows.with_columns(end=pl.col("start") + self._duration)

    def add(self, records: pl.DataFrame) -> None:
        """Records whose windows are all open."""
        if records.is_empty():
            return
        if not self._final:
            self._emit_changes(self._expand(records), self.open)
        if self.empty is not None:
            self.empty.note(self._expand(records.select("k", "t", "closed")))
        pane = gcd(self._duration, self._slide)
        panes = self._layout.merge(records.with_columns(t=pl.col("t") // pane * pane), [*KEY, "t", "source"])
        rows = self._expand(panes).drop("t")
        if pane != self._duration:
            rows = self._layout.merge(rows, [*WINDOW, "source"])
        self.open = append(self.open, rows)

    def _emit_changes(self, records: pl.DataFrame, among: pl.DataFrame | None) -> None:
        prior = _matching(among, records, WINDOW) if among is not None else records.clear()
        self.emitted.changes(records, prior, WINDOW, pl.col("count"))

    def seal(self, closed: pl.DataFrame) -> None:
        """Seal the windows that end where their key is closed. `closed`: columns to join on, and `closed`."""
        due_rows = self.take_due(closed)
        if self.empty is not None:
            due_rows = self._with_empty(due_rows, self.empty.passed(closed, due_rows))
        if due_rows is None:
            return
        rows = self._layout.merge(due_rows, [*WINDOW, "source"]).with_columns(
            revision=pl.lit(1, dtype=pl.Int64)
        )
        if self._final:
            self.emitted.windows(rows, WINDOW)
        if self._layout.spec.remembers:
            self.sealed = append(self.sealed, rows)

    def _with_empty(self, due: pl.DataFrame | None, empty: pl.DataFrame) -> pl.DataFrame | None:
        """The windows that are due, and empty ones: part rows of no source."""
        if empty.is_empty():
            return due
        shaped = self._no_rows.select(self._columns())
        return pl.concat([shaped if due is None else due, empty], how="diagonal_relaxed")

    def forget(self, keys: pl.DataFrame) -> None:
        """Forget the sealed windows of some keys."""
        super().forget(keys)
        if self.empty is not None:
            self.empty.forget(keys)

    def step(self, records: pl.DataFrame) -> Judged:
        """Records of which some window is closed already, at most one for each key."""
        spec = self._layout.spec
        rows = self._expand(records)
        is_open = pl.col("end") > pl.col("closed")
        too_late = pl.col("end") <= pl.col("closed") - spec.keep
        opened = rows.filter(is_open)
        if not opened.is_empty():
            if not self._final:
                self._emit_changes(opened, self.open)
            self.open = append(self.open, opened.select(self._columns()))
        taken = rows.filter(~is_open & ~too_late) if spec.late != "drop" else rows.clear()
        if self.empty is not None:
            self.empty.note(pl.concat([opened, taken]).select("k", "start", "closed"))
        if not taken.is_empty():
            self._revise(taken)
        dropped = rows.filter(~is_open & (too_late if spec.late != "drop" else pl.lit(True)))
        return Judged(records, records.join(dropped.select("pos").unique(), on="pos", how="semi"))

    def _revise(self, rows: pl.DataFrame) -> None:
        """Add records to sealed windows, and emit those again."""
        there = _matching(self.sealed, rows, WINDOW) if self.sealed is not None else None
        if not self._final:
            self._emit_changes(rows, there)
        added = rows.select(self._columns()).with_columns(revision=pl.lit(0, dtype=pl.Int64))
        if there is not None:
            added = pl.concat([there, added], how="diagonal_relaxed")
            assert self.sealed is not None
            self.sealed = self.sealed.join(rows.select(WINDOW).unique(), on=WINDOW, how="anti")
        merged = self._layout.merge(added, [*WINDOW, "source"], pl.col("revision").max())
        merged = merged.with_columns(revision=pl.col("revision").max().over(WINDOW) + 1)
        if self._final:
            self.emitted.windows(merged, WINDOW)
        self.sealed = append(self.sealed, merged)

    def _columns(self) -> list[str]:
        return [*WINDOW, "source", "count", "first", "last", *self._layout.columns]


def _matching(table: pl.DataFrame, rows: pl.DataFrame, on: list[str]) -> pl.DataFrame:
    return table.join(rows.select(on).unique(), on=on, how="semi")
