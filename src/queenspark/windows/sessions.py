"""Session windows: records of a key that are less than a gap apart."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from .closing import ClosingWindows, append
from .late import Judged
from .layout import KEY, WINDOW, window_ids
from .runs import in_run, running_max

_IDS = pl.List(pl.String)


class Sessions(ClosingWindows):
    """Open and sealed sessions, as part rows by source; `replaces` lists the sealed ids merged into them."""

    @property
    def _gap(self) -> int:
        return self._layout.spec.gap

    def behind(self) -> pl.Expr:
        """Whether a record must be judged individually; with `changes` each one extends its session."""
        return pl.col("t") < pl.col("closed") if self._final else pl.lit(True)

    def _columns(self) -> list[str]:
        return [*WINDOW, "source", "count", "first", "last", *self._layout.columns, "revision", "replaces"]

    def _rows(self, records: pl.DataFrame) -> pl.DataFrame:
        """Convert each record to a session."""
        return records.with_columns(
            start=pl.col("t"),
            end=pl.col("t") + self._gap,
            revision=pl.lit(0, dtype=pl.Int64),
            replaces=pl.lit([], dtype=_IDS),
        ).select(self._columns())

    def _join(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Merge touching sessions; rows stay split by source."""
        rows = rows.sort(*KEY, "start")
        k = pl.col("k")
        fresh = in_run(pl.col("start"), k) >= running_max(pl.col("end"), k).shift(1)
        rows = rows.with_columns(number=fresh.fill_null(True).cum_sum())
        merged = self._layout.merge(rows, ["number", "source"], pl.col("k").first(), *_bounds(rows))
        return self._together(merged, "number")

    def _together(self, merged: pl.DataFrame, by: str) -> pl.DataFrame:
        """Share the common columns among the rows of one session, split by source."""
        if merged["source"].n_unique() > 1:
            merged = merged.with_columns(
                pl.col("start").min().over(by),
                pl.col("end").max().over(by),
                pl.col("revision").max().over(by),
            )
        return merged.select(self._columns())

    def add(self, records: pl.DataFrame) -> None:
        """Add records that touch no sealed session."""
        if records.is_empty():
            return
        rows = self._join(self._rows(records))
        if self.open is not None:
            touched = records.select(KEY).unique()
            rows = self._join(pl.concat([self.open.join(touched, on=KEY, how="semi"), rows]))
            rows = pl.concat([self.open.join(touched, on=KEY, how="anti"), rows])
        self.open = rows

    def seal(self, closed: pl.DataFrame) -> None:
        """Seal the sessions that end at or before the watermark of their key."""
        due_rows = self.take_due(closed)
        if due_rows is None:
            return
        if self._final:
            due_rows = due_rows.with_columns(revision=pl.lit(1, dtype=pl.Int64))
            self.emitted.windows(_gathered(due_rows), WINDOW)
        # Also if late records are dropped: an on-time one may still touch a sealed session.
        self.sealed = append(self.sealed, due_rows.with_columns(replaces=pl.lit([], dtype=_IDS)))

    def step(self, records: pl.DataFrame, seal: Callable[[], None]) -> Judged:
        """Process records that may touch sealed sessions, one per key; `seal` seals due sessions."""
        spec = self._layout.spec
        own = self._rows(records)
        probe = records.select(*KEY, "pos", "closed", t_=pl.col("t"))
        open_touched = self._touched(self.open, probe)
        sealed_touched = self._touched(self.sealed, probe, remembered=True)
        end = pl.col("t_") + self._gap
        joins = probe.filter(end > pl.col("closed"))
        if open_touched is not None:
            joins = pl.concat(
                [joins, probe.join(open_touched.select(KEY).unique(), on=KEY, how="semi")]
            ).unique()
        rest = probe.join(joins, on=KEY, how="anti")
        too_late = rest.filter(end <= pl.col("closed") - spec.keep)
        taken = rest.join(too_late, on=KEY, how="anti") if spec.late != "drop" else rest.clear()
        dropped = rest.join(taken, on=KEY, how="anti")
        self._enter(joins, own, open_touched, sealed_touched, sealed=False)
        self._enter(taken, own, None, sealed_touched, sealed=True)
        seal()

        def of(keys: pl.DataFrame) -> pl.DataFrame:
            return records.join(keys.select(KEY), on=KEY, how="semi")

        return Judged(of(rest), of(dropped))

    def _touched(
        self, table: pl.DataFrame | None, probe: pl.DataFrame, *, remembered: bool = False
    ) -> pl.DataFrame | None:
        if table is None:
            return None
        touching = (pl.col("t_") < pl.col("end")) & (pl.col("start") < pl.col("t_") + self._gap)
        if remembered:
            touching &= pl.col("end") > pl.col("closed") - self._layout.spec.keep
        return table.join(probe, on=KEY, how="inner").filter(touching).select(self._columns())

    def _enter(
        self,
        probe: pl.DataFrame,
        own: pl.DataFrame,
        open_: pl.DataFrame | None,
        old: pl.DataFrame | None,
        *,
        sealed: bool,
    ) -> None:
        """Merge records into the sessions they touch. The result is open, or sealed and emitted at once."""
        if probe.is_empty():
            return
        pieces = [own.join(probe, on=KEY, how="semi")]
        names = []
        if old is not None and not (old := old.join(probe, on=KEY, how="semi")).is_empty():
            names.append(old.with_columns(id=self._ids(old)).select(*KEY, "id", "start", "end", "revision"))
            pieces.append(old.with_columns(replaces=pl.lit([], dtype=_IDS)))
            assert self.sealed is not None
            self.sealed = self.sealed.join(old.select(WINDOW).unique(), on=WINDOW, how="anti")
        if open_ is not None and not (open_ := open_.join(probe, on=KEY, how="semi")).is_empty():
            if not self._final:
                names.append(
                    open_.with_columns(id=self._ids(open_)).select(*KEY, "id", "start", "end", "revision")
                )
            pieces.append(open_)
            assert self.open is not None
            self.open = self.open.join(open_.select(WINDOW).unique(), on=WINDOW, how="anti")
        rows = self._union(pl.concat(pieces))
        rows = self._named(rows, pl.concat(names).unique() if names else None, sealed=sealed)
        if not self._final:
            rows = rows.with_columns(revision=pl.col("count").sum().over(WINDOW))
        if sealed or not self._final:
            self.emitted.windows(_gathered(rows), WINDOW)
        if not self._final:
            rows = rows.with_columns(replaces=pl.lit([], dtype=_IDS))
        if sealed:
            self.sealed = append(self.sealed, rows.with_columns(replaces=pl.lit([], dtype=_IDS)))
        else:
            self.open = append(self.open, rows)

    def _union(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Merge all rows of a key into one session: they touch through its record."""
        return self._together(self._layout.merge(rows, [*KEY, "source"], *_bounds(rows)), "k")

    def _ids(self, rows: pl.DataFrame) -> pl.Series:
        return window_ids(self._directory.name(rows.select(WINDOW)))

    def _named(self, rows: pl.DataFrame, names: pl.DataFrame | None, *, sealed: bool) -> pl.DataFrame:
        """Set the revision of the new session, and the ids that it replaces."""
        if names is None:
            return rows.with_columns(revision=pl.lit(1, dtype=pl.Int64))
        rows = rows.with_columns(id=self._ids(rows))
        ids = rows.select(*KEY, "id").unique()
        others = (
            names.join(ids, on=[*KEY, "id"], how="anti").group_by(KEY).agg(gone=pl.col("id").unique().sort())
        )
        same = names.join(ids, on=[*KEY, "id"], how="semi").group_by(KEY).agg(same=pl.col("revision").max())
        rows = rows.join(others, on=KEY, how="left").join(same, on=KEY, how="left")
        first = pl.col("source") == pl.col("source").min().over(KEY)
        revision = pl.col("same").fill_null(0) + 1 if self._final and sealed else pl.lit(1, dtype=pl.Int64)
        gone = (
            pl.when(first)
            .then(pl.col("gone"))
            .otherwise(pl.lit([], dtype=_IDS))
            .fill_null(pl.lit([], dtype=_IDS))
        )
        return rows.with_columns(revision=revision, replaces=pl.concat_list("replaces", gone)).select(
            self._columns()
        )


def _bounds(rows: pl.DataFrame) -> list[pl.Expr]:
    """The merged columns of sessions, apart from their parts."""
    replaces = pl.col("replaces").explode().drop_nulls()
    if not _replacing(rows):
        replaces = pl.col("replaces").first()
    return [pl.col("start").min(), pl.col("end").max(), pl.col("revision").max(), replaces]


def _replacing(rows: pl.DataFrame) -> bool:
    return bool(rows["replaces"].list.len().sum())


def _gathered(rows: pl.DataFrame) -> pl.DataFrame:
    """Give every row of a window all ids that the window replaces."""
    if not _replacing(rows):
        return rows
    lists = rows.group_by(WINDOW).agg(pl.col("replaces").explode().drop_nulls().unique().sort().alias("all"))
    return rows.join(lists, on=WINDOW, how="left").with_columns(replaces=pl.col("all")).drop("all")
