"""Emission: each window once it is sealed (`final`), or the windows of each record (`changes`)."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from .directory import Directory
from .layout import KEY, Layout
from .runs import RUN, in_runs

_RANGE = ("first_txid", "first_id", "last_txid", "last_id")
_SOURCES = pl.List(pl.Struct({"source": pl.Int32(), **{name: pl.Int64() for name in _RANGE}}))
_WORD = 2**64


class Emitted:
    """Collects rows in order of emission."""

    def __init__(self, layout: Layout, directory: Directory, *, at: str | None = None) -> None:
        self._layout = layout
        self._directory = directory
        self._at = at
        self.frames: list[pl.DataFrame] = []

    def windows(self, rows: pl.DataFrame, by: Sequence[str]) -> None:
        """Emit whole windows, given as part rows by source with their revision (and the ids they replace)."""
        if rows.is_empty():
            return
        if "replaces" not in rows.columns:
            rows = rows.with_columns(replaces=_nothing())
        # Records of one push have the same time, so count windows are sorted by number.
        order = "number" if "number" in by else "end"
        self._put(self._layout.with_sources(rows, by).sort(order, maintain_order=True))

    def changes(
        self, records: pl.DataFrame, prior: pl.DataFrame, by: Sequence[str], revision: pl.Expr
    ) -> None:
        """Emit one row per record: its window after it. `prior` are the earlier part rows."""
        if not records.is_empty():
            rows = self._running(records, prior, by).with_columns(revision=revision, replaces=_nothing())
            self._put(rows, of_records=True)

    def group(self, records: pl.DataFrame, prior: pl.DataFrame | None) -> None:
        """Emit one row per record: its key after it. `prior` are the part rows of these keys."""
        new = records.with_columns(is_new=pl.lit(True))
        old = None if prior is None else prior.with_columns(is_new=pl.lit(False))
        rows = self._layout.accumulate(in_runs(new if old is None else _both(old, new), KEY))
        self._put(rows.filter("is_new").with_columns(**_no_window()), of_records=True)

    def whole_groups(self, rows: pl.DataFrame) -> None:
        """Emit one row per key."""
        if not rows.is_empty():
            self._put(rows.with_columns(**_no_window()))

    def revisions(self, records: pl.DataFrame, prior: pl.DataFrame, by: Sequence[str]) -> None:
        """Do the same for late records; each creates the next revision of its window."""
        records = records.with_columns(revision=pl.lit(None, dtype=pl.Int64))
        running = self._running(records, prior, by, pl.col("revision").max())
        number = pl.int_range(1, pl.len() + 1).over(by)
        revision = pl.col("revision").fill_null(0) + number
        self._put(running.with_columns(revision=revision, replaces=_nothing()))

    def _running(
        self, records: pl.DataFrame, prior: pl.DataFrame, by: Sequence[str], *more: pl.Expr
    ) -> pl.DataFrame:
        """Return each record as its window after it, with its sources and `more` prior columns."""
        old = prior.with_columns(is_new=pl.lit(False), pos=pl.col("last"))
        new = records.with_columns(is_new=pl.lit(True))
        sources = _only_source(pl.col("first"), pl.col("last"))
        if pl.concat([old["source"], new["source"]]).n_unique() > 1:
            rows = running_sources(in_runs(_both(old, new), by[:2]))
            old, new = rows.filter(~pl.col("is_new")), rows.filter("is_new").drop(RUN)
            sources = pl.col("sources")
        old = self._layout.merge(old, by, pl.col("is_new").first(), pl.col("source").first(), *more)
        rows = self._layout.accumulate(in_runs(_both(old, new), by[:2]))
        carried = [pl.col(each.meta.output_name()).gather(pl.col("first_row")) for each in more]
        return _in_log_order(rows.with_columns(carried).filter("is_new").with_columns(sources=sources))

    def rolling(self, rows: pl.DataFrame) -> None:
        """Emit one row per new record: the last records of its key. Rows are in runs."""
        if rows["source"].n_unique() == 1:
            sources = _only_source(pl.col("first"), pl.col("last"))
        else:
            rows = rows.with_columns(sources=_window_sources(rows, self._layout.spec.rows))
            sources = pl.col("sources")
        rolled = self._layout.roll(rows).filter("is_new").with_columns(sources=sources)
        rolled = rolled.with_columns(revision=pl.lit(1, dtype=pl.Int64), replaces=_nothing())
        self._put(rolled, of_records=True)

    def _put(self, rows: pl.DataFrame, *, of_records: bool = False) -> None:
        named = self._directory.name(rows)
        self.frames.append(self._layout.output(named, at=self._at, of_records=of_records))


def _no_window() -> dict[str, pl.Expr]:
    """Columns of rows without a window."""
    none = pl.lit(None, dtype=pl.Int64)
    sources = pl.lit([], dtype=_SOURCES)
    return {
        "start": none,
        "end": none,
        "sources": sources,
        "revision": pl.col("count"),
        "replaces": _nothing(),
    }


def _nothing() -> pl.Expr:
    return pl.lit([], dtype=pl.List(pl.String))


def _in_log_order(rows: pl.DataFrame) -> pl.DataFrame:
    """Sort rows by key and log order, if needed."""
    wrong = (pl.col("k") == pl.col("k").shift(1)) & (pl.col("pos") < pl.col("pos").shift(1))
    return rows.sort("k", "pos") if rows.select(wrong.any()).item() else rows


def _both(old: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
    return new if old.is_empty() else pl.concat([old, new], how="diagonal_relaxed")


def running_sources(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the positions of every source up to each part row of its run, in row order."""
    sources = sorted(rows["source"].drop_nulls().unique())
    ranges = []
    for source in sources:
        own = pl.col("source") == source
        first = pl.when(own).then(pl.col("first")).cum_min().forward_fill().over("w")
        last = pl.when(own).then(pl.col("last")).cum_max().forward_fill().over("w")
        values = (first // _WORD, first % _WORD, last // _WORD, last % _WORD)
        fields = [value.cast(pl.Int64).alias(name) for name, value in zip(_RANGE, values, strict=True)]
        struct = pl.struct(pl.lit(source, dtype=pl.Int32).alias("source"), *fields)
        ranges.append(pl.when(first.is_not_null()).then(struct))
    return rows.with_columns(pl.concat_list(ranges).list.drop_nulls().alias("sources"))


def _window_sources(rows: pl.DataFrame, size: int) -> pl.Expr:
    """Return the positions of every source among the last `size` rows of a key."""
    sources = sorted(rows["source"].unique())
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
