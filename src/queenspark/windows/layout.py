"""Part rows: the common shape of everything that the engine aggregates.

A record is a part row with count 1, a window in the state is one or more part rows, and merging the part rows
of a window gives the window. A position is one number, txid * 2^64 + id, ordered as the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import polars as pl

from .directory import whole
from .functions import columns_of, parts_of
from .parts import Part, Parts, low_row
from .record_columns import COLUMNS, MERGED, is_merged
from .runs import running_sum
from .spec import WindowSpec

KEY = ["k"]
WINDOW = [*KEY, "start", "end"]
NEVER = -(2**62)  # before all times
_WORD = 2**64
_POSITION = pl.col("txid").cast(pl.Int128) * _WORD + pl.col("id")


class Layout:
    """The part columns of a spec."""

    def __init__(self, spec: WindowSpec) -> None:
        self.spec = spec
        self._rolls = spec.kind == "rows"
        self.inputs = columns_of(spec.aggregates)
        self.aggregates: list[Parts] = [parts_of(each, rolls=self._rolls) for each in spec.aggregates]
        #: Number of records to roll over, by part.
        self._sizes: dict[str, int] = {}
        found: dict[str, Part] = {}
        for aggregate, of in zip(spec.aggregates, self.aggregates, strict=True):
            for part in of.parts:
                found[part.name] = part
                self._sizes[part.name] = aggregate.rows or spec.rows
        self.parts = list(found.values())
        self.columns = list(found)

    def records(self, batch: pl.DataFrame) -> pl.DataFrame:
        """Convert the batch to part rows in log order, with `t` (the record's time), `created` and `pos`."""
        time = pl.col("created_us" if self.spec.clock == "ingest" else "event_us")
        pos = pl.col("first") if is_merged(batch) else _POSITION
        parts = [pl.col(*MERGED, *self.columns)] if is_merged(batch) else self._of_records()
        numbered = batch.with_columns(pos=pos, t=time, created=pl.col("created_us"))
        return numbered.select("k", "source", "created", "t", "pos", *parts)

    def parted(self, records: pl.DataFrame) -> pl.DataFrame:
        """Records of a batch as part rows, with the columns of records but not their inputs."""
        columns = [*COLUMNS, *(["g"] if "g" in records.columns else [])]
        if is_merged(records):
            return records.select(*columns, *MERGED, *self.columns)
        return records.with_columns(pos=_POSITION).select(*columns, *self._of_records())

    def _of_records(self) -> list[pl.Expr]:
        return [
            pl.lit(1, dtype=pl.Int64).alias("count"),
            pl.col("pos").alias("first"), pl.col("pos").alias("last"),
            *(part.of_record.alias(part.name) for part in self.parts),
        ]  # fmt: skip

    def merge(self, rows: pl.DataFrame, by: Sequence[str], *more: pl.Expr) -> pl.DataFrame:
        """Merge part rows by some columns."""
        if "source" in by and rows["source"].n_unique() == 1:
            by, more = [name for name in by if name != "source"], (*more, pl.col("source").first())
        return rows.group_by(by).agg(
            pl.col("count").sum(),
            pl.col("first").min(),
            pl.col("last").max(),
            *(part.merge.alias(part.name) for part in self.parts),
            *more,
        )

    def accumulate(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Replace each part row by the merge of itself and all earlier ones of its run."""
        return rows.with_columns(
            running_sum(pl.col("count")).alias("count"),
            pl.col("first").gather(pl.col("first_row")),
            *(part.accumulate.alias(part.name) for part in self.parts if part.accumulate is not None),
        )

    def roll(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Replace each record by the merge of the last ones of its run, as many as the spec requires."""
        row = pl.col("row")
        sizes = {self.spec.rows, *self._sizes.values()}
        rows = rows.with_columns(
            pl.max_horizontal("first_row", row - (size - 1)).alias(low_row(size)) for size in sizes
        )
        low = pl.col(low_row(self.spec.rows))
        return rows.with_columns(
            (row - low + 1).alias("count"),
            pl.col("t").gather(low).alias("start"),
            pl.col("t").alias("end"),
            pl.col("pos").gather(low).alias("first"),
            pl.col("pos").alias("last"),
            *(
                part.roll(self._sizes[part.name]).alias(part.name)
                for part in self.parts
                if part.roll is not None
            ),
        )

    def output(self, rows: pl.DataFrame, *, at: str | None = None, of_records: bool = False) -> pl.DataFrame:
        """Build emitted rows from named, merged part rows that have revision, sources and replaces.

        `at`: the position included in the id, `first` or `last`. `of_records`: each row is for one record,
        with its `t` and `pos`.
        """
        record = [
            pl.col("t").alias("time_us"),
            _txid(pl.col("pos")).alias("txid"),
            _id(pl.col("pos")).alias("id"),
        ]
        values = [
            column.alias(name)
            for aggregate, of in zip(self.spec.aggregates, self.aggregates, strict=True)
            for name, column in ((aggregate.name, of.value), (aggregate.error, of.error))
            if name is not None and column is not None
        ]
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
            *(record if of_records else ()),
            *values,
        )

    def with_sources(self, rows: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
        """Merge part rows by window, listing positions by source."""
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


@lru_cache(maxsize=10_000)
def layout_of(spec: WindowSpec) -> Layout:
    """Return the cached layout of a spec."""
    return Layout(spec)


def window_ids(rows: pl.DataFrame) -> pl.Series:
    """Return the ids of windows (of kinds with no position in the id)."""
    return rows.select(_window_id(rows, None).alias("id"))["id"]


def in_version(window_id: pl.Expr, version: int, other: int) -> pl.Expr:
    """Translate ids of windows of a version above 1 to another version."""
    number = f":v{other}" if other > 1 else ""
    return window_id.str.replace(rf"(?s)^(.*):v{version}((?::u?\d+-\d+)?)$", f"${{1}}{number}${{2}}")


def _window_id(rows: pl.DataFrame, at: str | None) -> pl.Expr:
    """Times in milliseconds; then the version if above 1, and a position or the sub-millisecond rest."""
    start, end = pl.col("start"), pl.col("end")
    parts = [pl.format("{}:{}:{}:{}", "stream", "key", start // 1000, end // 1000)]
    if whole(rows["version"].max() or 0) > 1:
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
