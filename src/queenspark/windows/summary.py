"""Cached facts about the tables of a spec."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import NamedTuple

import polars as pl

from .clock import closes_at
from .directory import stream_of
from .empty import EmptyWindows
from .spec import COUNTED, WindowSpec

Stream = tuple[int, int]  # id and version
NEVER = 2**62
"""After all times."""


class Open(NamedTuple):
    """The open windows of a stream: their number, and the position of their first record."""

    windows: int
    txid: int
    id: int


@lru_cache(maxsize=10_000)
def parsed(text: str) -> WindowSpec:
    """Decode a spec, cached."""
    return WindowSpec.from_json(text)


class Summary:
    """Facts about the tables of one spec, each computed once. Tables are immutable."""

    def __init__(self, spec: str, tables: Mapping[str, pl.DataFrame]) -> None:
        self._text = spec
        self._tables = tables

    @cached_property
    def _spec(self) -> WindowSpec:
        return parsed(self._text)

    @cached_property
    def numbers(self) -> dict[int, Stream]:
        """The streams by number."""
        table = self._tables.get("streams")
        return {} if table is None else {g: (stream, version) for g, stream, version in table.rows()}

    @cached_property
    def size(self) -> int:
        """Bytes in memory."""
        return sum(int(table.estimated_size()) for table in self._tables.values())

    @cached_property
    def open(self) -> dict[Stream, Open]:
        """The open windows by stream."""
        table = self._table("open")
        if table is None:
            return {}
        window = "number" if self._spec.kind == "count" else "start"
        counted = (
            table.lazy()
            .group_by("k", window)
            .agg(pl.col("first").min())
            .group_by(g=stream_of(pl.col("k")))
            .agg(
                pl.len(),
                (pl.col("first").min() // 2**64).alias("txid"),
                (pl.col("first").min() % 2**64).alias("id"),
            )
            .collect()
        )
        return {self.numbers[g]: Open(*counts) for g, *counts in counted.iter_rows()}

    @cached_property
    def closes(self) -> dict[Stream, int]:
        """The earliest safe time that can seal a window, by stream."""
        spec = self._spec
        if spec.kind in COUNTED:
            return {}
        open_ = self._table("open")
        tables = [] if open_ is None else [open_.lazy().select("k", "end")]
        empty = self._table("empty")
        if empty is not None:
            tables.append(EmptyWindows(spec, empty).next_ends().lazy())
        if not tables:
            return {}
        ends = pl.concat(tables) if len(tables) > 1 else tables[0]
        if spec.clock == "event":
            ends = ends.join(self._tables["clock"].lazy(), on="k", how="left")
        closes = closes_at(spec, pl.col("end"), pl.col("l"))
        found = ends.group_by(g=stream_of(pl.col("k"))).agg(closes.min()).collect()
        return {self.numbers[g]: at for g, at in found.iter_rows()}

    @cached_property
    def forgets(self) -> dict[Stream, int]:
        """The safe time at which a stream can expire all its state, if none of it is open."""
        spec = self._spec
        if spec.ttl_us is not None:
            return self._latest("seen", "seen", spec.ttl_us)
        found = (
            self._latest("sealed", "end", spec.grace_us + spec.keep)
            if spec.clock == "ingest"
            else self._latest("clock", "l", spec.keep)
        )
        return {stream: at for stream, at in found.items() if stream not in self.closes}

    @cached_property
    def next_due(self) -> int:
        """The earliest safe time at which a tick has an effect."""
        if not self._tables:
            return NEVER
        return min((at for times in (self.closes, self.forgets) for at in times.values()), default=NEVER)

    @cached_property
    def next_close(self) -> int:
        """The earliest safe time that can seal a window."""
        return min(self.closes.values(), default=NEVER)

    @cached_property
    def open_windows(self) -> int:
        """The number of unsealed windows."""
        return sum(open_.windows for open_ in self.open.values())

    def due(self, safe: Mapping[Stream, int]) -> bool:
        """Whether one of these ticks has an effect."""
        if not self._tables:
            return False
        return any(
            at <= safe[stream]
            for times in (self.closes, self.forgets)
            for stream, at in times.items()
            if stream in safe
        )

    def _latest(self, name: str, column: str, after: int) -> dict[Stream, int]:
        table = self._table(name)
        if table is None:
            return {}
        found = table.lazy().group_by(g=stream_of(pl.col("k"))).agg(pl.col(column).max() + after).collect()
        return {self.numbers[g]: at for g, at in found.iter_rows()}

    def _table(self, name: str) -> pl.DataFrame | None:
        table = self._tables.get(name)
        return None if table is None or table.is_empty() else table
