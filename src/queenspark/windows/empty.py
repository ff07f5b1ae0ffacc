"""Empty windows: emitted on request between and after windows with records."""

from __future__ import annotations

import polars as pl

from .directory import stream_of
from .grid import first_start, starts_between
from .layout import KEY, NEVER
from .spec import WindowSpec

#: Limit of consecutive empty windows; then a key gets no more until its next record.
MOST = 10_000
_TABLE = {"k": pl.Int64, "upto": pl.Int64, "last": pl.Int64}


class EmptyWindows:
    """Per key: the end of its emitted empty windows, and its last earlier window with a record."""

    def __init__(self, spec: WindowSpec, table: pl.DataFrame | None) -> None:
        self._spec = spec
        self.table = table if table is not None else pl.DataFrame(schema=_TABLE)

    def note(self, rows: pl.DataFrame) -> None:
        """Note windows with records: `k`, `start`, and `closed`, the watermark of the key."""
        is_sealed = pl.col("start") + self._spec.duration <= pl.col("closed")
        noted = rows.group_by(KEY).agg(
            upto=pl.col("closed").min(), last=pl.col("start").filter(is_sealed).max().fill_null(NEVER)
        )
        known = self.table.join(noted.select(KEY), on=KEY, how="semi")
        new = noted.join(known.select(KEY), on=KEY, how="anti")
        raised = noted.select("k", "last").join(known.select("k", "upto"), on=KEY, how="inner")
        merged = pl.concat([known, raised.select(list(_TABLE)), new]).group_by(KEY)
        rest = self.table.join(noted.select(KEY), on=KEY, how="anti")
        self.table = pl.concat([rest, merged.agg(pl.col("upto").max(), pl.col("last").max())])

    def passed(self, closed: pl.DataFrame, due: pl.DataFrame | None) -> pl.DataFrame:
        """Return the empty windows up to the watermarks; `due` are those with records.

        `closed` has `k` or `g`, `closed` and, if keys can expire, `cap`: the end of a key's life.
        """
        if "g" in closed.columns:
            marked = self.table.with_columns(g=stream_of(pl.col("k"))).join(closed, on="g").drop("g")
        else:
            marked = self.table.join(closed, on=KEY)
        starts = self.table.clear().select("k", start="last")
        if due is not None:
            starts = due.select("k", "start").unique()
        newest = starts.group_by(KEY).agg(newest=pl.col("start").max())
        marked = marked.join(newest, on=KEY, how="left")
        if "cap" in marked.columns:
            cap = pl.max_horizontal("cap", pl.col("newest") + self._spec.duration)
            marked = marked.with_columns(closed=pl.min_horizontal("closed", cap))
        marked = marked.filter(pl.col("closed") > pl.col("upto"))
        if marked.is_empty():
            return starts.clear().with_columns(end=pl.col("start"))
        known = marked.filter(pl.col("last") > NEVER).select("k", start="last")
        nodes = pl.concat([known, starts.join(marked.select(KEY), on=KEY, how="semi")]).sort("k", "start")
        nodes = nodes.join(marked.select("k", "upto", "closed"), on=KEY, maintain_order="left")
        slide = self._spec.slide
        first = pl.max_horizontal(pl.col("start") + slide, first_start(self._spec, pl.col("upto")))
        last = pl.min_horizontal(
            pl.col("start").shift(-1).over(KEY) - slide,
            pl.col("start") + MOST * slide,
            first_start(self._spec, pl.col("closed")) - slide,
        )
        gaps = nodes.select("k", first=first, last=last).filter(pl.col("first") <= pl.col("last"))
        moved = marked.select("k", upto="closed", last=pl.max_horizontal("last", "newest"))
        self.table = pl.concat([self.table.join(moved, on=KEY, how="anti"), moved])
        empty = gaps.select("k", start=starts_between(self._spec, pl.col("first"), pl.col("last"))).explode(
            "start"
        )
        return empty.with_columns(end=pl.col("start") + self._spec.duration)

    def forget(self, keys: pl.DataFrame) -> None:
        """Expire these keys."""
        self.table = self.table.join(keys, on=KEY, how="anti")

    def next_ends(self) -> pl.DataFrame:
        """Return the end of the next empty window of each key, if no record arrives first: `k` and `end`."""
        start = pl.max_horizontal(first_start(self._spec, pl.col("upto")), pl.col("last") + self._spec.slide)
        waiting = self.table.filter(pl.col("last") > NEVER).with_columns(start=start)
        reached = pl.col("start") <= pl.col("last") + MOST * self._spec.slide
        return waiting.filter(reached).select("k", end=pl.col("start") + self._spec.duration)


def following(open_: pl.DataFrame, marks: pl.DataFrame) -> pl.DataFrame:
    """Return the table of keys with open windows, after which empty ones are emitted from now on."""
    rows = open_.select("k").unique().with_columns(g=stream_of(pl.col("k")))
    rows = rows.join(marks, on=marks.columns[0], how="left")
    return rows.select("k", upto=pl.col("closed").fill_null(NEVER), last=pl.lit(NEVER, dtype=pl.Int64))
