"""Groups without windows: the aggregates of a key since its first record."""

from __future__ import annotations

import polars as pl

from .closing import append
from .directory import Directory
from .emission import Emitted
from .layout import KEY, Layout


class Groups:
    """One part row per key. Rows have no window: start_us, end_us and window_id are null."""

    def __init__(self, layout: Layout, directory: Directory, table: pl.DataFrame | None) -> None:
        self._layout = layout
        self._changes = layout.spec.emission == "changes"
        self.table = table
        self.emitted = Emitted(layout, directory)

    def add(self, records: pl.DataFrame) -> None:
        """Add the records; with `changes` emit one row each."""
        if records.is_empty():
            return
        columns = ["k", "count", "first", "last", *self._layout.columns]
        prior, rest = None, None
        rows = records.select(columns)
        if self.table is not None:
            touched = pl.col("k").is_in(records["k"].unique().implode())
            prior, rest = self.table.filter(touched), self.table.filter(~touched)
            rows = pl.concat([prior, rows])
        if self._changes:
            self.emitted.group(records, prior)
        self.table = append(rest, self._layout.merge(rows, KEY).select(columns))

    def forget(self, keys: pl.DataFrame) -> None:
        """Expire these keys."""
        if self.table is not None:
            self.table = self.table.join(keys, on=KEY, how="anti")

    def finish(self) -> None:
        """Emit every key at the end of input, with the emission `final`."""
        if self.table is not None and not self._changes:
            self.emitted.whole_groups(self.table)
