"""The key directory: every (stream, version, key) with state has a number.

All tables of the state and all computations of a step use the number `k`; names are restored only on emitted
rows. The upper bits of a number identify the stream.
"""

from __future__ import annotations

import polars as pl

STREAM_BITS = 2**40
_KEYS = {"k": pl.Int64, "g": pl.Int64, "key": pl.String}
_STREAMS = {"g": pl.Int64, "stream": pl.Int64, "version": pl.Int32}
_SMALL = 1_000  # records
_SLACK = 10_000  # keys without state that are tolerated before a clean-up


def whole(value: object) -> int:
    """Narrow an integer minimum or maximum, which Polars types as object."""
    assert isinstance(value, int)
    return value


def stream_of(k: pl.Expr) -> pl.Expr:
    """The stream number of a key."""
    return k // STREAM_BITS


def is_only_stream(rows: pl.DataFrame, g: int) -> bool:
    """Whether all rows belong to the stream of this number."""
    return bool(rows.select((stream_of(pl.col("k")) == g).all()).item())


def among(table: pl.DataFrame, numbers: pl.Series) -> pl.DataFrame:
    """Filter a table to these numbers before a join: a large table is scanned, not hashed."""
    if table.height < 4 * numbers.len():
        return table
    return table.filter(pl.col("k").is_in(numbers.unique().implode()))


class Directory:
    """Numbers of streams and keys of one spec."""

    def __init__(self, streams: pl.DataFrame | None, keys: pl.DataFrame | None) -> None:
        self.streams = streams if streams is not None else pl.DataFrame(schema=_STREAMS)
        self.keys = keys if keys is not None else pl.DataFrame(schema=_KEYS)

    def number_streams(self, streams: pl.DataFrame) -> pl.DataFrame:
        """Add numbers `g` to streams (stream, version, …), assigning new ones as needed."""
        known = ["stream", "version"]
        if (
            streams.height == self.streams.height == 1
            and streams.select(known).row(0) == self.streams.row(0)[1:]
        ):
            return streams.with_columns(self.streams["g"])
        new = streams.select(known).join(self.streams, on=known, how="anti", maintain_order="left")
        if not new.is_empty():
            first = 0 if self.streams.is_empty() else whole(self.streams["g"].max()) + 1
            numbers = pl.int_range(first, first + new.height, eager=True).alias("g")
            self.streams = pl.concat([self.streams, new.with_columns(numbers).select(list(_STREAMS))])
        return streams.join(self.streams, on=known, how="left", maintain_order="left")

    def number_keys(self, batch: pl.DataFrame) -> pl.DataFrame:
        """Add `k` to each record of a batch with `g`."""
        if batch.height < _SMALL:
            return self._number_few(batch)
        codes = batch["key"].cast(pl.Categorical(pl.Categories.random())).to_physical().cast(pl.Int64)
        one = batch["g"].n_unique() == 1
        local = codes if one else codes * (whole(self.streams["g"].max()) + 1) + batch["g"]
        batch = batch.with_columns(local.alias("local"))
        seen = batch.select("local", "g", "key").unique("local", keep="any")
        known = self.keys
        if known.height > 4 * seen.height:
            known = known.filter(pl.col("key").hash().is_in(seen["key"].hash().implode()))
        found = seen.join(known, on=["g", "key"], how="left")
        new = found.filter(pl.col("k").is_null())
        if not new.is_empty():
            new = self._enter(new)
            found = pl.concat([found.filter(pl.col("k").is_not_null()), new.select(found.columns)])
        if one:
            return batch.with_columns(k=found.sort("local")["k"].gather(local)).drop("local")
        return batch.join(found.select("local", "k"), on="local", how="left", maintain_order="left").drop(
            "local"
        )

    def _number_few(self, batch: pl.DataFrame) -> pl.DataFrame:
        """Do the same with fewer calls, for a few records."""
        known = self.keys
        if known.height > 4 * batch.height:
            known = known.filter(pl.col("key").is_in(batch["key"].implode()))
        found = batch.join(known, on=["g", "key"], how="left", maintain_order="left")
        if not found["k"].has_nulls():
            return found
        new = found.filter(pl.col("k").is_null()).select("g", "key").unique(maintain_order=True)
        known = pl.concat([known, self._enter(new).select(list(_KEYS))])
        return batch.join(known, on=["g", "key"], how="left", maintain_order="left")

    def _enter(self, new: pl.DataFrame) -> pl.DataFrame:
        last = 0 if self.keys.is_empty() else whole((self.keys["k"] % STREAM_BITS).max()) + 1
        number = pl.int_range(last, last + new.height, eager=True)
        new = new.with_columns(k=new["g"] * STREAM_BITS + number)
        self.keys = pl.concat([self.keys, new.select(list(_KEYS))])
        return new

    def name(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Add stream, version and key to rows."""
        named = rows.join(among(self.keys, rows["k"]), on="k", how="left", maintain_order="left")
        return named.join(self.streams, on="g", how="left", maintain_order="left")

    def clean(self, used: list[pl.DataFrame]) -> None:
        """Remove unused keys, once there are many."""
        most = sum(table.height for table in used)
        if self.keys.height > 2 * most + _SLACK:
            ks = (
                pl.concat([table.select("k") for table in used]).unique()
                if used
                else self.keys.select("k").clear()
            )
            self.keys = self.keys.join(ks, on="k", how="semi")
