"""What is emitted: each window once it is sealed (`final`), or each record's windows (`changes`)."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from .directory import Directory
from .layout import KEY, Layout

_RANGE = ("first_txid", "first_id", "last_txid", "last_id")
_WORD = 2**64


class Emitted:
    """Collects rows in the order in which they are emitted."""

    def __init__(self, layout: Layout, directory: Directory, *, at: str | None = None) -> None:
        self._layout = layout
        self._directory = directory
        self._at = at
        self.frames: list[pl.DataFrame] = []

    def windows(self, rows: pl.DataFrame, by: Sequence[str]) -> None:
        """Whole windows by their end, given as part rows by source with their revision (and what they replace)."""
        if rows.is_empty():
            return
        if "replaces" not in rows.columns:
            rows = rows.with_columns(replaces=_nothing())
        self._put(self._layout.with_sources(rows, by).sort("end", maintain_order=True))

    def changes(
        self, records: pl.DataFrame, prior: pl.DataFrame, by: Sequence[str], revision: pl.Expr
    ) -> None:
        """One row for each record: its window after it. `prior` are the part rows that were there before."""
        if records.is_empty():
            return
        new = records.with_columns(is_new=pl.lit(True))
        if prior.is_empty():
            rows = running_sources(_coded(new, by), ["w"])
        else:
            old = prior.with_columns(is_new=pl.lit(False), pos=pl.col("last"))
            everything = _coded(pl.concat([old, new], how="diagonal_relaxed"), by)
            new = running_sources(everything, ["w"]).filter("is_new")
            merged = self._layout.merge(everything.filter(~pl.col("is_new")), ["w"])
            rows = pl.concat([merged.with_columns(is_new=pl.lit(False)), new], how="diagonal_relaxed")
        running = self._layout.accumulate(rows, ["w"]).filter("is_new")
        self._put(running.with_columns(revision=revision, replaces=_nothing()))

    def rolling(self, rows: pl.DataFrame, size: int) -> None:
        """One row for each new record: the last `size` part rows of its key. Rows are in log order."""
        first = pl.coalesce(pl.col("pos").shift(size - 1), pl.col("pos").first())
        rows = rows.with_columns(
            *(
                expression.over(KEY).alias(f"_{name}")
                for name, expression in self._layout.rolling(size).items()
            ),
            start=pl.coalesce(pl.col("t").shift(size - 1), pl.col("t").first()).over(KEY),
            end=pl.col("t"),
            count=pl.int_range(1, pl.len() + 1).clip(upper_bound=size).over(KEY),
            first=first.over(KEY),
            last=pl.col("pos"),
        )
        rows = rows.with_columns(
            sources=_window_sources(rows, size), revision=pl.lit(1, dtype=pl.Int64), replaces=_nothing()
        )
        values = {name: pl.col(f"_{name}") for name in self._layout.columns}
        self._put(rows.filter("is_new").with_columns(**values))

    def _put(self, rows: pl.DataFrame) -> None:
        named = self._directory.name(rows)
        self.frames.append(self._layout.output(named, at=self._at))


def _nothing() -> pl.Expr:
    return pl.lit([], dtype=pl.List(pl.String))


def _coded(rows: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Rows with one number `w` for each group: grouping by one column is what polars does best."""
    groups = rows.select(by).unique().with_row_index("w")
    return rows.join(groups, on=list(by), how="left", maintain_order="left")


def running_sources(rows: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """For each part row, the positions of every source up to it, in the order of the rows."""
    sources = sorted(rows["source"].unique())
    if len(sources) == 1:
        return rows.with_columns(sources=_only_source(pl.col("first").first().over(by), pl.col("last")))
    ranges = []
    for source in sources:
        own = pl.col("source") == source
        first = pl.when(own).then(pl.col("first")).cum_min().forward_fill().over(by)
        last = pl.when(own).then(pl.col("last")).cum_max().forward_fill().over(by)
        values = (first // _WORD, first % _WORD, last // _WORD, last % _WORD)
        fields = [value.cast(pl.Int64).alias(name) for name, value in zip(_RANGE, values, strict=True)]
        struct = pl.struct(pl.lit(source, dtype=pl.Int32).alias("source"), *fields)
        ranges.append(pl.when(first.is_not_null()).then(struct))
    return rows.with_columns(pl.concat_list(ranges).list.drop_nulls().alias("sources"))


def _window_sources(rows: pl.DataFrame, size: int) -> pl.Expr:
    """The positions of every source among the last `size` rows of a key."""
    sources = sorted(rows["source"].unique())
    if len(sources) == 1:
        return _only_source(pl.col("first"), pl.col("last"))
    ranges = []
    for source in sources:
        own = pl.when(pl.col("source") == source).then(pl.col("pos"))
        number = pl.int_range(pl.len())
        last = own.forward_fill()
        last_number = pl.when(own.is_not_null()).then(number).forward_fill()
        later = own.backward_fill()
        later_number = pl.when(own.is_not_null()).then(number).backward_fill()
        first = pl.coalesce(later.shift(size - 1), pl.when(number < size).then(later.first()))
        first_number = pl.coalesce(
            later_number.shift(size - 1), pl.when(number < size).then(later_number.first())
        )
        inside = ((last_number > number - size) & (first_number <= number)).fill_null(False)
        values = (first // _WORD, first % _WORD, last // _WORD, last % _WORD)
        fields = [
            value.cast(pl.Int64).over(KEY).alias(name) for name, value in zip(_RANGE, values, strict=True)
        ]
        struct = pl.struct(pl.lit(source, dtype=pl.Int32).alias("source"), *fields)
        ranges.append(pl.when(inside.over(KEY)).then(struct))
    return pl.concat_list(ranges).list.drop_nulls()


def _only_source(first: pl.Expr, last: pl.Expr) -> pl.Expr:
    values = (first // _WORD, first % _WORD, last // _WORD, last % _WORD)
    fields = [value.cast(pl.Int64).alias(name) for name, value in zip(_RANGE, values, strict=True)]
    return pl.concat_list(pl.struct("source", *fields))
