"""Clocks: the watermark of each key.

Ingest time: safe time minus grace, the same for all keys of a stream, advanced by ticks only. Event time: per
key, record by record, its largest event time minus grace; and after `idle` time without records, measured in
log time, the ingest clock minus grace, but not beyond its last window. So silence seals existing windows, and
a paused backfill can continue.
"""

from __future__ import annotations

import polars as pl

from .directory import among, is_only_stream, stream_of, whole
from .grid import last_start
from .layout import KEY, NEVER
from .runs import of_run, running_max
from .spec import WindowSpec

_NO_MARKS = pl.DataFrame(schema={"k": pl.Int64, "closed": pl.Int64, "cap": pl.Int64})
_KEYS = {"k": pl.Int64, "m": pl.Int64, "l": pl.Int64, "c": pl.Int64}


class IngestClock:
    """One watermark per stream."""

    def __init__(self, spec: WindowSpec, table: pl.DataFrame | None) -> None:
        self._spec = spec
        schema = {"g": pl.Int64, "closed": pl.Int64}
        self.table = table if table is not None else pl.DataFrame(schema=schema)

    def judge(self, records: pl.DataFrame) -> pl.DataFrame:
        """Add `closed` to the records: the watermark of their key when they arrived."""
        if self.table.height == 1 and is_only_stream(records, self.table["g"][0]):
            return records.with_columns(closed=pl.lit(self.table["closed"][0], dtype=pl.Int64))
        numbered = records.with_columns(g=stream_of(pl.col("k")))
        joined = numbered.join(self.table, on="g", how="left", maintain_order="left").drop("g")
        return joined.with_columns(pl.col("closed").fill_null(NEVER))

    def pass_(self, records: pl.DataFrame) -> pl.DataFrame | None:
        """Nothing closes before the tick."""
        return None

    def tick(self, streams: pl.DataFrame) -> pl.DataFrame:
        """Advance safe time to `safe` for some streams; return all watermarks."""
        if streams.height == self.table.height == 1 and streams["g"][0] == self.table["g"][0]:
            mark = int(streams["safe"][0]) - self._spec.grace_us
            if mark > self.table["closed"][0]:
                self.table = self.table.with_columns(pl.Series("closed", [mark], pl.Int64))
            return self.table
        moved = streams.select("g", closed=pl.col("safe") - self._spec.grace_us)
        self.table = (
            pl.concat([self.table, moved]).group_by("g").agg(pl.col("closed").max())
            if not self.table.is_empty()
            else moved
        )
        return self.table

    def marks(self) -> pl.DataFrame:
        """The watermarks of all streams."""
        return self.table

    def forgettable(self, streams: pl.DataFrame) -> pl.DataFrame | None:
        """Ingest time keeps no state per key."""
        return None

    def forget(self, keys: pl.DataFrame) -> None:
        """Nothing to expire."""


class EventClock:
    """Per key: its largest event time `m`, its largest creation time `l`, and its watermark `c`."""

    def __init__(self, spec: WindowSpec, table: pl.DataFrame | None) -> None:
        self._spec = spec
        self.table = table if table is not None else pl.DataFrame(schema=_KEYS)

    def judge(self, records: pl.DataFrame) -> pl.DataFrame:
        """Return records by key, with `closed`, the watermark of their key on arrival, and `silence`.

        A record's own time is included in `closed`: it can never close its own window, so the result is the
        same.
        """
        spec = self._spec
        k = pl.col("k")
        rows = records if records["k"].is_sorted() else records.sort("k", maintain_order=True)
        rows = rows.join(among(self.table, records["k"]), on=KEY, how="left", maintain_order="left")
        in_order = _in_order(rows)
        created = _before("created", k, in_order=in_order)
        rows = rows.with_columns(silence=pl.col("created") - pl.max_horizontal("l", created))
        silent = (pl.col("silence") >= spec.idle).fill_null(False)
        own = pl.col("t") - spec.grace_us
        if in_order and not rows.select(silent.any()).item():
            marks = own
        else:
            newest = pl.max_horizontal("m", _before("t", k, in_order=in_order))
            by_silence = pl.when(silent).then(self._by_silence(pl.col("created"), newest))
            marks = of_run(running_max(pl.max_horizontal(by_silence, own), k), k)
        return rows.with_columns(
            closed=pl.max_horizontal("c", marks),
            forget=(pl.col("silence") >= spec.keep).fill_null(False),
        ).drop("m", "l", "c")

    def pass_(self, records: pl.DataFrame) -> pl.DataFrame | None:
        """Advance the clock by these records; return the watermarks of their keys."""
        moved = records.group_by(KEY).agg(
            pl.col("t").max().alias("m"),
            pl.col("created").max().alias("l"),
            pl.col("closed").max().alias("c"),
        )
        if self.table.is_empty():
            self.table = moved
        else:
            both = pl.concat([_matching(self.table, moved), moved])
            merged = both.group_by(KEY).agg(pl.col("m").max(), pl.col("l").max(), pl.col("c").max())
            self.table = pl.concat([self.table.join(moved, on=KEY, how="anti"), merged])
            moved = merged
        return moved.select(*KEY, closed=pl.col("c"))

    def tick(self, streams: pl.DataFrame) -> pl.DataFrame:
        """Advance safe time to `safe` for some streams; return the watermarks of idle keys."""
        spec = self._spec
        if not self._any_silent(streams):
            return _NO_MARKS
        table = self._with_safe(streams)
        silent = (pl.col("safe") - pl.col("l") >= spec.idle).fill_null(False)
        table = table.with_columns(
            c=pl.when(silent)
            .then(pl.max_horizontal("c", self._by_silence(pl.col("safe"), pl.col("m"))))
            .otherwise("c"),
            silent=silent,
        )
        self.table = table.select(list(_KEYS))
        cap = pl.col("l") + spec.keep - spec.grace_us
        return table.filter("silent").select(*KEY, closed=pl.col("c"), cap=cap)

    def _any_silent(self, streams: pl.DataFrame) -> bool:
        """Whether any key can be idle, by the oldest of all and the latest safe time."""
        if self.table.is_empty() or streams.is_empty():
            return False
        return whole(streams["safe"].max()) - whole(self.table["l"].min()) >= min(
            self._spec.idle, self._spec.keep
        )

    def _by_silence(self, now: pl.Expr, newest: pl.Expr) -> pl.Expr:
        """The watermark of an idle key; `newest` is its largest event time."""
        spec = self._spec
        mark = now - spec.grace_us
        if spec.emit_empty:
            return mark
        end = newest + spec.gap if spec.kind == "session" else last_start(spec, newest) + spec.duration
        return pl.min_horizontal(mark, end)

    def _with_safe(self, streams: pl.DataFrame) -> pl.DataFrame:
        if streams.height == 1 and is_only_stream(self.table, streams["g"][0]):
            return self.table.with_columns(safe=pl.lit(streams["safe"][0], dtype=pl.Int64))
        numbered = self.table.with_columns(g=stream_of(pl.col("k")))
        return numbered.join(streams.select("g", "safe"), on="g", how="left", maintain_order="left")

    def marks(self) -> pl.DataFrame:
        """The watermarks of all keys."""
        return self.table.select(*KEY, closed=pl.col("c"))

    def forgettable(self, streams: pl.DataFrame) -> pl.DataFrame | None:
        """Return keys that were idle long enough to expire."""
        if not self._any_silent(streams):
            return None
        return self._with_safe(streams).filter(pl.col("safe") - pl.col("l") >= self._spec.keep).select(KEY)

    def forget(self, keys: pl.DataFrame) -> None:
        """Expire these keys."""
        self.table = self.table.join(keys, on=KEY, how="anti")


def clock_of(spec: WindowSpec, table: pl.DataFrame | None = None) -> IngestClock | EventClock:
    """The clock of a spec, with its table in the state."""
    return (IngestClock if spec.clock == "ingest" else EventClock)(spec, table)


def closes_at(spec: WindowSpec, end: pl.Expr, last: pl.Expr) -> pl.Expr:
    """The safe time that seals a window if no more records of its key arrive.

    `last` is the largest creation time of its key; only event time uses it.
    """
    closes = end + spec.grace_us
    return closes if spec.clock == "ingest" else pl.max_horizontal(closes, last + spec.idle)


def _in_order(rows: pl.DataFrame) -> bool:
    """Whether times only rise in the run of each key: then the largest so far is the last one."""
    falls = pl.any_horizontal(pl.col(name) < pl.col(name).shift(1) for name in ("created", "t"))
    return not rows.select(((pl.col("k") == pl.col("k").shift(1)) & falls).any()).item()


def _before(column: str, k: pl.Expr, *, in_order: bool) -> pl.Expr:
    """The largest value of the records before in the run of a key; null for the first."""
    if in_order:
        return pl.when(k == k.shift(1)).then(pl.col(column).shift(1))
    return of_run(running_max(pl.col(column), k).shift(1), k)


def _matching(table: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    return table.join(rows, on=KEY, how="semi")
