"""The lifetime of keys without a clock: idle keys expire.

As with event time, the records of a key decide: one created `ttl` after the previous newest starts the key
afresh. Ticks only make the expiry prompt.
"""

from __future__ import annotations

import polars as pl

from .directory import among, stream_of, whole
from .layout import KEY
from .runs import of_run, running_max

_NONE = pl.DataFrame(schema={"k": pl.Int64})
_SEEN = {"k": pl.Int64, "seen": pl.Int64}


class Lifetime:
    """Per key: creation time of its newest record."""

    def __init__(self, ttl_us: int, table: pl.DataFrame | None) -> None:
        self._ttl = ttl_us
        self.table = table if table is not None else pl.DataFrame(schema=_SEEN)

    def judge(self, records: pl.DataFrame) -> pl.DataFrame:
        """Return records by key, with `forget`: whether their key expired before them."""
        k = pl.col("k")
        rows = records.lazy().sort("k", maintain_order=True)
        known = among(self.table, records["k"]).lazy()
        rows = rows.join(known, on=KEY, how="left", maintain_order="left")
        before = pl.max_horizontal("seen", of_run(running_max(pl.col("created"), k).shift(1), k))
        forget = (pl.col("created") - before >= self._ttl).fill_null(False)
        return rows.with_columns(forget=forget).drop("seen").collect()

    def note(self, records: pl.DataFrame) -> None:
        """Note the creation times of records."""
        new = records.group_by(KEY).agg(seen=pl.col("created").max())
        known = self.table.join(new, on=KEY, how="semi")
        merged = pl.concat([known, new]).group_by(KEY).agg(pl.col("seen").max())
        self.table = pl.concat([self.table.join(new, on=KEY, how="anti"), merged])

    def expired(self, streams: pl.DataFrame) -> pl.DataFrame:
        """Return keys that are expired at the safe time of their stream."""
        if self.table.is_empty() or streams.is_empty():
            return _NONE
        if whole(streams["safe"].max()) - whole(self.table["seen"].min()) < self._ttl:
            return _NONE
        numbered = self.table.with_columns(g=stream_of(pl.col("k"))).join(streams, on="g")
        return numbered.filter(pl.col("safe") - pl.col("seen") >= self._ttl).select(KEY)

    def forget(self, keys: pl.DataFrame) -> None:
        """Expire these keys."""
        self.table = self.table.join(keys, on=KEY, how="anti")
