"""Count windows and rows buffers: the records of a key by number, independent of time."""

from __future__ import annotations

from math import gcd

import polars as pl

from .closing import append
from .directory import Directory
from .emission import Emitted
from .layout import KEY, Layout
from .runs import RUN, in_runs

_NUMBERED = [*KEY, "number"]
_COUNTS = {"k": pl.Int64, "seen": pl.Int64}


class CountWindows:
    """Window j contains the records j * step … j * step + size - 1 of its key."""

    def __init__(
        self, layout: Layout, directory: Directory, open_: pl.DataFrame | None, counts: pl.DataFrame | None
    ) -> None:
        self._layout = layout
        self._size, self._step = layout.spec.rows, layout.spec.each
        self._final = layout.spec.emission == "final"
        self.open = open_
        self.counts = counts if counts is not None else pl.DataFrame(schema=_COUNTS)
        self.emitted = Emitted(layout, directory, at="first")

    def add(self, records: pl.DataFrame) -> None:
        """Number the records; emit full windows or, with `changes`, the windows of each record."""
        if records.is_empty():
            return
        records = records.join(self.counts, on=KEY, how="left", maintain_order="left").with_columns(
            n=pl.col("seen").fill_null(0) + pl.int_range(pl.len()).over(KEY),
            start=pl.col("t"), end=pl.col("t"),
        )  # fmt: skip
        seen = records.group_by(KEY).agg(seen=pl.col("n").max() + 1)
        self.counts = pl.concat([self.counts.join(seen, on=KEY, how="anti"), seen])
        columns = [*_NUMBERED, "start", "end", "source", "count", "first", "last", *self._layout.columns]
        if not self._final:
            each = self._expand(records, 1)
            prior = (
                self.open.join(each.select(_NUMBERED).unique(), on=_NUMBERED, how="semi")
                if self.open is not None
                else each.clear()
            )
            self._emit_changes(each, prior)
        pane = gcd(self._size, self._step)
        panes = self._merge(records.with_columns(n=pl.col("n") // pane * pane), [*KEY, "n", "source"])
        rows = self._expand(panes, pane).select(columns)
        rest = self.open
        if self.open is not None:
            touched = pl.col("k").is_in(records["k"].unique().implode())
            rest = self.open.filter(~touched).select(columns)
            rows = pl.concat([self.open.filter(touched).select(columns), rows])
        rows = self._merge(rows, [*_NUMBERED, "source"]).select(columns)
        full = pl.col("count").sum().over(_NUMBERED) >= self._size
        if self._final:
            done = rows.filter(full).with_columns(
                start=pl.col("start").get(pl.col("first").arg_min()).over(_NUMBERED),
                end=pl.col("end").get(pl.col("last").arg_max()).over(_NUMBERED),
                revision=pl.lit(1, dtype=pl.Int64),
            )
            self.emitted.windows(done, [*_NUMBERED, "start", "end"])
        self.open = append(rest, rows.filter(~full))

    def _merge(self, rows: pl.DataFrame, by: list[str]) -> pl.DataFrame:
        return self._layout.merge(
            rows,
            by,
            pl.col("start").get(pl.col("first").arg_min()),
            pl.col("end").get(pl.col("last").arg_max()),
        )

    def _expand(self, rows: pl.DataFrame, pane: int) -> pl.DataFrame:
        """Repeat each row for each window that contains its records."""
        last = pl.col("n") // self._step
        first = pl.max_horizontal((pl.col("n") - self._size) // self._step + 1, pl.lit(0))
        if self._step == self._size:
            return rows.with_columns(number=last)
        return rows.with_columns(number=pl.int_ranges(first, last + 1)).explode("number")

    def _emit_changes(self, records: pl.DataFrame, prior: pl.DataFrame) -> None:
        began = (
            pl.concat([prior, records], how="diagonal_relaxed")
            .group_by(_NUMBERED)
            .agg(began=pl.col("start").get(pl.col("first").arg_min()))
        )
        records = records.join(began, on=_NUMBERED, how="left", maintain_order="left").with_columns(
            start=pl.col("began")
        )
        self.emitted.changes(records, prior, _NUMBERED, pl.col("count"))

    def forget(self, keys: pl.DataFrame) -> None:
        """Expire these keys."""
        self.counts = self.counts.join(keys, on=KEY, how="anti")
        if self.open is not None:
            self.open = self.open.join(keys, on=KEY, how="anti")


class RowsBuffer:
    """The last `size` records of each key; every record emits the buffer's content after it."""

    def __init__(self, layout: Layout, directory: Directory, buffer: pl.DataFrame | None) -> None:
        self._layout = layout
        self._size = layout.spec.rows
        self.buffer = buffer
        self.emitted = Emitted(layout, directory, at="last")

    def add(self, records: pl.DataFrame) -> None:
        """Emit one row per record."""
        if records.is_empty():
            return
        columns = ("k", "source", "t", "pos", *self._layout.columns)
        rows = records.select(*columns, is_new=pl.lit(True))
        rest = self.buffer
        if self.buffer is not None:
            touched = pl.col("k").is_in(records["k"].unique().implode())
            rest = self.buffer.filter(~touched)
            kept = self.buffer.filter(touched).with_columns(is_new=pl.lit(False))
            rows = pl.concat([kept, rows.select(kept.columns)])
        rows = in_runs(rows, KEY)
        self.emitted.rolling(rows)
        row = pl.int_range(pl.len(), dtype=pl.Int64)
        ends = (pl.col("w") != pl.col("w").shift(-1)).fill_null(True)
        left = pl.when(ends).then(row).backward_fill() - row  # records after it
        last = rows.filter(left < self._size).drop("is_new", *RUN)
        self.buffer = append(rest, last)

    def forget(self, keys: pl.DataFrame) -> None:
        """Expire these keys."""
        if self.buffer is not None:
            self.buffer = self.buffer.join(keys, on=KEY, how="anti")
