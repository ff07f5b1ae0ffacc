"""Part rows: the one shape of everything that the engine adds up.

A record is a part row with count 1, a window in the state is one or more part rows, and merging part
rows of the same window gives the window. Positions are one number, txid * 2^64 + id, so that their order
is the log's order.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from .aggregates import Parts, parts_of
from .runs import rolling_sum, running_sum
from .spec import WindowSpec

KEY = ["k"]
WINDOW = [*KEY, "start", "end"]
NEVER = -(2**62)  # before all times
_WORD = 2**64


class Layout:
    """The part columns of a spec, over columns of given types."""

    def __init__(self, spec: WindowSpec, kinds: dict[str, pl.DataType]) -> None:
        self.spec = spec
        self.aggregates: list[Parts] = [
            parts_of(aggregate, number, kinds.get(aggregate.column or "", pl.Float64()))
            for number, aggregate in enumerate(spec.aggregates)
        ]
        self.parts = [part for parts, _ in self.aggregates for part in parts]
        self.columns = [part.name for part in self.parts]

    def records(self, batch: pl.DataFrame) -> pl.DataFrame:
        """The batch as part rows in log order, with `t` (the record's time), `created` and `pos`."""
        time = pl.col("created_us" if self.spec.clock == "ingest" else "event_us")
        return batch.with_columns(
            pos=pl.col("txid").cast(pl.Int128) * _WORD + pl.col("id"), t=time, created=pl.col("created_us")
        ).select(
            "k", "source", "created", "t", "pos",
            pl.lit(1, dtype=pl.Int64).alias("count"),
            pl.col("pos").alias("first"), pl.col("pos").alias("last"),
            *(part.of_record.alias(part.name) for part in self.parts),
        )  # fmt: skip

    def merge(self, rows: pl.DataFrame, by: Sequence[str], *more: pl.Expr) -> pl.DataFrame:
        """Part rows merged by some columns."""
        if "source" in by and rows["source"].n_unique() == 1:
            by, more = [name for name in by if name != "source"], (*more, pl.col("source").first())
        return rows.group_by(by).agg(
            pl.col("count").sum(),
            pl.col("first").min(),
            pl.col("last").max(),
            *(part.merge(pl.col(part.name)).alias(part.name) for part in self.parts),
            *more,
        )

    def accumulate(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Part rows in runs, each replaced by the merge of itself and all before it in its run."""
        return rows.with_columns(
            running_sum(pl.col("count")).alias("count"),
            pl.col("first").gather(pl.col("first_row")),
            *(
                (
                    running_sum(pl.col(part.name))
                    if part.whole
                    else part.accumulate(pl.col(part.name)).over("w")
                ).alias(part.name)
                for part in self.parts
            ),
        )

    def roll(self, rows: pl.DataFrame, size: int) -> pl.DataFrame:
        """Records in runs, each replaced by the merge of the last `size` ones, down to `low_row`."""
        return rows.with_columns(
            (pl.int_range(pl.len()) - pl.col("low_row") + 1).alias("count"),
            pl.col("t").gather(pl.col("low_row")).alias("start"),
            pl.col("t").alias("end"),
            pl.col("pos").gather(pl.col("low_row")).alias("first"),
            pl.col("pos").alias("last"),
            *(
                (
                    rolling_sum(pl.col(part.name))
                    if part.whole
                    else part.roll(pl.col(part.name), size).over("w")
                ).alias(part.name)
                for part in self.parts
            ),
        )

    def output(self, rows: pl.DataFrame, *, at: str | None = None) -> pl.DataFrame:
        """Emitted rows from named, merged part rows that have revision, sources and replaces.

        `at`: the position that belongs into the id, `first` or `last`.
        """
        return rows.select(
            "stream",
            "version",
            "key",
            _window_id(rows, at).alias("window_id"),
            pl.col("start").alias("start_us"),
            pl.col("end").alias("end_us"),
            "count",
            pl.col("revision").cast(pl.Int64),
            "sources",
            "replaces",
            *(
                parts.finish.alias(aggregate.name)
                for aggregate, parts in zip(self.spec.aggregates, self.aggregates, strict=True)
            ),
        )

    def with_sources(self, rows: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
        """Windows from part rows that are split by source: parts merged, positions listed by source."""
        ranges = pl.struct(
            "source",
            _txid(pl.col("first")).alias("first_txid"),
            _id(pl.col("first")).alias("first_id"),
            _txid(pl.col("last")).alias("last_txid"),
            _id(pl.col("last")).alias("last_id"),
        )
        has_empty = rows["source"].has_nulls()
        if has_empty:
            ranges = pl.when(pl.col("source").is_not_null()).then(ranges)
        windows = rows.with_columns(ranges.alias("sources"))
        if rows.is_empty() or rows["source"].n_unique() <= 1:
            windows = windows.with_columns(pl.concat_list("sources").alias("sources"))
        else:
            windows = self.merge(windows.sort("source"), by, pl.col("sources"), *self._carried(rows, by))
        return windows.with_columns(pl.col("sources").list.drop_nulls()) if has_empty else windows

    def _carried(self, rows: pl.DataFrame, by: Sequence[str]) -> list[pl.Expr]:
        return [
            pl.col(name).first()
            for name in ("revision", "replaces")
            if name in rows.columns and name not in by
        ]


def window_ids(rows: pl.DataFrame) -> pl.Series:
    """The ids of windows (of kinds whose id needs no position)."""
    return rows.select(_window_id(rows, None).alias("id"))["id"]


def _window_id(rows: pl.DataFrame, at: str | None) -> pl.Expr:
    """Times in milliseconds; then the version above 1, and a position or what is beyond milliseconds."""
    start, end = pl.col("start"), pl.col("end")
    parts = [pl.format("{}:{}:{}:{}", "stream", "key", start // 1000, end // 1000)]
    if rows.select((pl.col("version") > 1).any()).item():
        later = pl.when(pl.col("version") > 1).then(pl.format(":v{}", "version"))
        parts.append(later.otherwise(pl.lit("")))
    fine = (start % 1000 != 0) | (end % 1000 != 0)
    if at is not None:
        parts.append(pl.format(":{}-{}", _txid(pl.col(at)), _id(pl.col(at))))
    elif rows.select(fine.any()).item():
        parts.append(pl.when(fine).then(pl.format(":u{}-{}", start % 1000, end % 1000)).otherwise(pl.lit("")))
    return pl.concat_str(parts)


def _txid(position: pl.Expr) -> pl.Expr:
    return (position // _WORD).cast(pl.Int64)


def _id(position: pl.Expr) -> pl.Expr:
    return (position % _WORD).cast(pl.Int64)
