"""Tumbling and sliding windows."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

import polars as pl

from .closing import ClosingWindows, append
from .directory import Directory, stream_of
from .empty import EmptyWindows
from .grid import first_start, last_start, starts_between
from .late import Judged
from .layout import KEY, WINDOW, Layout


class TimeWindows(ClosingWindows):
    """Open and sealed windows of one spec. Rows of the same window are merged on demand."""

    def __init__(
        self,
        layout: Layout,
        directory: Directory,
        open_: pl.DataFrame | None,
        sealed: pl.DataFrame | None,
        records: pl.DataFrame,
        empty: EmptyWindows | None,
        unkept: pl.DataFrame | None,
    ) -> None:
        super().__init__(layout, directory, open_, sealed)
        self._spec = layout.spec
        self._duration, self._slide = self._spec.duration, self._spec.slide
        self.empty = empty
        #: The end of sealed windows that cannot be revised (moves.py), by key or stream.
        self.unkept = unkept
        self._no_rows = records.clear()

    def behind(self) -> pl.Expr:
        """Whether a window of a record is already closed."""
        return first_start(self._spec, pl.col("t")) + self._duration <= pl.col("closed")

    def _expand(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Repeat each row for each window that contains its time."""
        last = last_start(self._spec, pl.col("t"))
        if self._slide == self._duration:
            return rows.with_columns(start=last, end=last + self._duration)
        first = first_start(self._spec, pl.col("t"))
        rows = rows.with_columns(start=starts_between(self._spec, first, last)).explode("start")
        return rows.with_columns(end=pl.col("start") + self._duration)

    def add(self, records: pl.DataFrame) -> None:
        """Add records of open windows only."""
        if records.is_empty():
            return
        if not self._final:
            self._emit_changes(self._expand(records))
        if self.empty is not None:
            self.empty.note(self._expand(records.select("k", "t", "closed")))
        if self._slide == self._duration:
            start = last_start(self._spec, pl.col("t"))
            rows = self._layout.merge(records.with_columns(start=start), [*KEY, "start", "source"])
            self.open = append(self.open, rows.with_columns(end=pl.col("start") + self._duration))
            return
        pane = gcd(self._duration, self._slide)
        panes = self._layout.merge(records.with_columns(t=pl.col("t") // pane * pane), [*KEY, "t", "source"])
        rows = self._expand(panes).drop("t")
        if pane != self._duration:
            rows = self._layout.merge(rows, [*WINDOW, "source"])
        self.open = append(self.open, rows)

    def _emit_changes(self, rows: pl.DataFrame) -> None:
        windows = rows.select(WINDOW).unique()
        prior = [
            table.join(windows, on=WINDOW, how="semi").select(self._columns())
            for table in (self.open, self.sealed)
            if table is not None
        ]
        self.emitted.changes(rows, pl.concat(prior) if prior else rows.clear(), WINDOW, pl.col("count"))

    def seal(self, closed: pl.DataFrame) -> None:
        """Seal the windows up to the watermark. `closed`: columns to join on, and `closed`."""
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
        """Add empty windows to those that are due: part rows without a source."""
        if empty.is_empty():
            return due
        shaped = self._no_rows.with_columns(start=pl.col("t"), end=pl.col("t")).select(self._columns())
        return pl.concat([shaped if due is None else due, empty], how="diagonal_relaxed")

    def forget(self, keys: pl.DataFrame) -> None:
        """Expire the sealed windows of some keys."""
        super().forget(keys)
        if self.empty is not None:
            self.empty.forget(keys)
        if self.unkept is not None and "k" in self.unkept.columns:
            self.unkept = self.unkept.join(keys, on=KEY, how="anti")

    def step(self, records: pl.DataFrame, seal: Callable[[], None]) -> Judged:
        """Process records, some of them late for a window; `seal` seals the windows they close.

        A key's watermark only rises: a window gets all its on-time records before its late ones.
        """
        behind = records.filter(self.behind())
        rows = self._expand(behind)
        is_open = pl.col("end") > pl.col("closed")
        opened, late = rows.filter(is_open), rows.filter(~is_open)
        is_final = self._is_final(late)
        taken, dropped = late.filter(~is_final), late.filter(is_final)
        in_time = records.filter(~self.behind())
        if self._final:
            self.add(in_time)
        else:
            everything = pl.concat([self._expand(in_time), opened, taken])
            self._emit_changes(everything.sort("pos"))
            self.open = append(self.open, self._expand(in_time).select(self._columns()))
        self.open = append(self.open, opened.select(self._columns()))
        if self.empty is not None and not (opened.is_empty() and taken.is_empty()):
            self.empty.note(pl.concat([opened, taken]).select("k", "start", "closed"))
        seal()
        if not taken.is_empty():
            self._revise(taken)
        return Judged(behind, behind.join(dropped.select("pos").unique(), on="pos", how="semi"))

    def _is_final(self, rows: pl.DataFrame) -> pl.Series:
        """Whether a closed window cannot be revised."""
        if not self._spec.remembers:
            return pl.repeat(True, rows.height, eager=True)
        upto = pl.col("closed") - self._spec.keep
        if self.unkept is not None:
            rows = rows.with_columns(g=stream_of(pl.col("k"))).join(
                self.unkept, on=self.unkept.columns[0], how="left", maintain_order="left"
            )
            upto = pl.max_horizontal(upto, "upto")
        return rows.select(pl.col("end") <= upto).to_series()

    def _revise(self, rows: pl.DataFrame) -> None:
        """Add records to sealed windows, and emit these again."""
        windows = rows.group_by(WINDOW).agg(late=pl.len().cast(pl.Int64))
        added = rows.select(self._columns()).with_columns(revision=pl.lit(0, dtype=pl.Int64))
        there = added.clear()
        if self.sealed is not None:
            there = self.sealed.join(windows, on=WINDOW, how="semi").select(added.columns)
            self.sealed = self.sealed.join(windows, on=WINDOW, how="anti")
        if self._final:
            self.emitted.revisions(rows, there, WINDOW)
        merged = self._layout.merge(pl.concat([there, added]), [*WINDOW, "source"], pl.col("revision").max())
        merged = merged.join(windows, on=WINDOW, how="left").with_columns(
            revision=pl.col("revision").max().over(WINDOW) + pl.col("late")
        )
        self.sealed = append(self.sealed, merged.drop("late"))

    def _columns(self) -> list[str]:
        return [*WINDOW, "source", "count", "first", "last", *self._layout.columns]
