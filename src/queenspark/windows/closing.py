"""Windows closed by time: open ones, sealed ones kept for revisions, and the transitions between them."""

from __future__ import annotations

import polars as pl

from .directory import Directory, stream_of, whole
from .emission import Emitted
from .layout import KEY, Layout


class ClosingWindows:
    """Common base of tumbling, sliding and session windows. Tables hold part rows by window and source."""

    def __init__(
        self, layout: Layout, directory: Directory, open_: pl.DataFrame | None, sealed: pl.DataFrame | None
    ) -> None:
        self._layout = layout
        self._directory = directory
        self._final = layout.spec.emission == "final"
        self.open = open_
        self.sealed = sealed
        self.emitted = Emitted(layout, directory)

    def take_due(self, closed: pl.DataFrame) -> pl.DataFrame | None:
        """Remove and return the open windows to seal. `closed`: `k` or `g`, and `closed`."""
        split = due(self.open, closed, 0) if self.open is not None else None
        if split is None:
            return None
        taken, self.open = split
        return taken

    def forget(self, keys: pl.DataFrame) -> None:
        """Expire the sealed windows of some keys."""
        if self.sealed is not None:
            self.sealed = self.sealed.join(keys, on=KEY, how="anti")

    def purge(self, closed: pl.DataFrame) -> None:
        """Expire sealed windows that can no longer be revised."""
        if self.sealed is not None:
            split = due(self.sealed, closed, self._layout.spec.keep)
            if split is not None:
                self.sealed = split[1]


def append(table: pl.DataFrame | None, rows: pl.DataFrame) -> pl.DataFrame:
    """Append rows to a table."""
    return rows if table is None or table.is_empty() else pl.concat([table, rows.select(table.columns)])


def due(table: pl.DataFrame, closed: pl.DataFrame, keep: int) -> tuple[pl.DataFrame, pl.DataFrame] | None:
    """Split off the windows that end at or before the watermark of their key (or stream) minus `keep`.

    None if there are none, which is detected without a join over the keys.
    """
    if table.is_empty() or closed.is_empty():
        return None
    closed = closed.select(pl.exclude("cap"))
    last = whole(closed["closed"].max()) - keep
    if whole(table["end"].min()) > last:
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
