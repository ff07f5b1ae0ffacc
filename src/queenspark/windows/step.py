"""One batch and tick for the streams of one spec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import polars as pl

from .clock import EventClock, clock_of
from .counts import CountWindows, RowsBuffer
from .directory import Directory, stream_of, whole
from .empty import EmptyWindows
from .errors import RecordsNeeded
from .groups import Groups
from .late import Judged
from .layout import KEY, layout_of
from .lifetime import Lifetime
from .moves import Stream
from .record_columns import is_merged
from .records import records_of
from .sessions import Sessions
from .spec import WindowSpec
from .time_windows import TimeWindows

_STREAM = ["stream", "version"]
_DEAD = [*_STREAM, "key", "txid", "id"]
_COUNTERS = {"g": pl.Int64, "late": pl.Int64, "dropped": pl.Int64}
LATE_LOG = {
    "stream": pl.Int64, "version": pl.Int32, "key": pl.String, "txid": pl.Int64, "id": pl.Int64,
    "time_us": pl.Int64, "closed_us": pl.Int64,
}  # fmt: skip
DEAD = {name: LATE_LOG[name] for name in _DEAD}


class Step:
    """One batch and tick for all streams of one spec."""

    def __init__(
        self,
        spec: WindowSpec,
        tables: Mapping[str, pl.DataFrame],
        frames: Sequence[pl.DataFrame],
        safe: Mapping[Stream, int],
        was: Mapping[Stream, int] | None = None,
    ) -> None:
        """Prepare; `safe` is the tick of each stream that takes part, `was` the one before the records."""
        self.spec = spec
        table = tables.get
        self._directory = Directory(table("streams"), table("keys"))
        self._ticks = self._directory.number_streams(ticks_of(safe))
        layout = layout_of(spec)
        only = self._ticks["g"][0] if self._ticks.height == 1 else None
        merged = [frame for frame in frames if is_merged(frame)]
        mine = records_of([frame for frame in frames if not is_merged(frame)], layout.inputs, only)
        if merged:
            number = [] if only is None else [pl.lit(only, dtype=pl.Int64).alias("g")]
            parted = [layout.parted(frame.with_columns(number)) for frame in merged]
            mine = pl.concat([*([] if mine.is_empty() else [layout.parted(mine)]), *parted])
        if only is None:
            mine = mine.join(
                self._ticks.select(*_STREAM, "g"), on=_STREAM, how="inner", maintain_order="left"
            )
        self.dead = pl.DataFrame(schema=DEAD)
        if spec.clock == "event" and mine["event_us"].has_nulls():
            self.dead = mine.filter(pl.col("event_us").is_null()).select(_DEAD)
            mine = mine.filter(pl.col("event_us").is_not_null())
        self._was = None if was is None or mine.is_empty() else self._lie(mine, was)
        mine = (
            self._directory.number_keys(mine)
            if not mine.is_empty()
            else mine.with_columns(k=pl.lit(0, dtype=pl.Int64))
        )
        self._records = layout.records(mine)
        if not self._records["pos"].is_sorted():
            self._records = self._records.sort("pos")
        self._clock = clock_of(spec, table("clock"))
        self._lifetime = None if spec.ttl_us is None else Lifetime(spec.ttl_us, table("seen"))
        self._counters = table("counters")
        self._judged: list[Judged] = []
        self.windows: TimeWindows | Sessions | CountWindows | RowsBuffer | Groups
        if spec.kind == "count":
            self.windows = CountWindows(layout, self._directory, table("open"), table("counts"))
        elif spec.kind == "rows":
            self.windows = RowsBuffer(layout, self._directory, table("buffer"))
        elif spec.kind == "group":
            self.windows = Groups(layout, self._directory, table("groups"))
        elif spec.kind == "session":
            self.windows = Sessions(layout, self._directory, table("open"), table("sealed"))
        else:
            empty = EmptyWindows(spec, table("empty")) if spec.emit_empty else None
            self.windows = TimeWindows(
                layout, self._directory, table("open"), table("sealed"), self._records, empty, table("unkept")
            )

    def _lie(self, records: pl.DataFrame, was: Mapping[Stream, int]) -> pl.DataFrame | None:
        """Return the tick before the records, if some of them were created before it.

        Otherwise it has no effect: a record created after it closes everything that it closes.
        """
        if not was or whole(records["created_us"].min()) >= max(was.values()):
            return None
        return self._directory.number_streams(ticks_of(was))

    def run(self) -> None:
        """Process the records, then the tick."""
        windows = self.windows
        if isinstance(windows, CountWindows | RowsBuffer | Groups):
            self._count(windows)
            return
        if self._was is not None:
            self._tick(windows, self._was)
        if not self._records.is_empty():
            self._epochs(windows)
        self._tick(windows, self._ticks)

    def _tick(self, windows: TimeWindows | Sessions, ticks: pl.DataFrame) -> None:
        windows.seal(self._clock.tick(ticks))
        forgettable = self._clock.forgettable(ticks)
        if forgettable is not None and not forgettable.is_empty():
            self._forget(windows, forgettable)
        if windows.sealed is not None and not windows.sealed.is_empty():
            windows.purge(self._clock.marks())

    def _count(self, windows: CountWindows | RowsBuffer | Groups) -> None:
        """Process windows without a clock; keys may expire."""
        life = self._lifetime
        if life is None:
            windows.add(self._records)
            return
        if self._was is not None:
            self._expire(windows, life, self._was)
        if not self._records.is_empty():
            self._lives(windows, life.judge(self._records))
            life.note(self._records)
        self._expire(windows, life, self._ticks)

    def _lives(self, windows: CountWindows | RowsBuffer | Groups, judged: pl.DataFrame) -> None:
        """Split the records of a key where it expires."""
        if not judged["forget"].any():
            windows.add(self._records)
            return
        numbered = judged.with_columns(epoch=pl.col("forget").cast(pl.Int64).cum_sum().over(KEY))
        for number in range(_highest(numbered["epoch"]) + 1):
            part = numbered.filter(pl.col("epoch") == number)
            returning = part.filter("forget").select(KEY)
            if not returning.is_empty():
                windows.forget(returning)
            windows.add(part.select(self._records.columns).sort("pos"))

    def _expire(
        self, windows: CountWindows | RowsBuffer | Groups, life: Lifetime, ticks: pl.DataFrame
    ) -> None:
        gone = life.expired(ticks)
        if not gone.is_empty():
            windows.forget(gone)
            life.forget(gone)

    def _epochs(self, windows: TimeWindows | Sessions) -> None:
        """Split where a key was idle long enough to expire."""
        judged = self._clock.judge(self._records)
        if self.spec.clock == "ingest" or not judged["forget"].any():
            self._rounds(windows, judged)
            return
        epoch = pl.col("forget").cast(pl.Int64).cum_sum().over(KEY)
        numbered = judged.with_columns(epoch=epoch)
        for number in range(_highest(numbered["epoch"]) + 1):
            part = numbered.filter(pl.col("epoch") == number)
            returning = part.filter("forget")
            if not returning.is_empty():
                # Its idle time only: whether its own time counts depends on the expiry.
                mark = pl.col("created") - self.spec.grace_us
                windows.seal(
                    returning.select("k", closed=mark, cap=mark - pl.col("silence") + self.spec.keep)
                )
                self._forget(windows, returning.select(KEY))
            records = part.select(self._records.columns)
            self._rounds(windows, self._clock.judge(records))

    def _forget(self, windows: TimeWindows | Sessions, keys: pl.DataFrame) -> None:
        """Expire keys, unless they have an open window."""
        if windows.open is not None:
            keys = keys.join(windows.open.select(KEY).unique(), on=KEY, how="anti")
        windows.forget(keys)
        self._clock.forget(keys)

    def _rounds(self, windows: TimeWindows | Sessions, judged: pl.DataFrame) -> None:
        """Process the records of each key in order, split at those that must be judged individually."""
        if not judged.select(windows.behind().any()).item():
            self._round(windows, judged)
            return
        judged = judged.with_columns(behind=windows.behind())
        if judged.select((pl.col("behind") & (pl.col("count") > 1)).any()).item():
            raise RecordsNeeded
        if isinstance(windows, TimeWindows) and windows.empty is None:
            self._step(windows, judged)
            return
        numbered = judged.with_columns(number=pl.col("behind").cast(pl.Int64).cum_sum().over(KEY))
        for number in range(_highest(numbered["number"]) + 1):
            part = numbered.filter(pl.col("number") == number)
            alone = part.filter("behind")
            if not alone.is_empty():
                windows.seal(alone.select(*KEY, "closed"))
                self._step(windows, alone)
            self._round(windows, part.filter(~pl.col("behind")))

    def _step(self, windows: TimeWindows | Sessions, records: pl.DataFrame) -> None:
        self._judged.append(windows.step(records, lambda: self._pass(windows, records)))

    def _round(self, windows: TimeWindows | Sessions, records: pl.DataFrame) -> None:
        if not records.is_empty():
            windows.add(records)
            self._pass(windows, records)

    def _pass(self, windows: TimeWindows | Sessions, records: pl.DataFrame) -> None:
        closed = self._clock.pass_(records)
        if closed is not None:
            windows.seal(closed)

    def emitted(self) -> list[pl.DataFrame]:
        """Emitted rows."""
        return self.windows.emitted.frames

    def late_log(self) -> pl.DataFrame | None:
        """Late records that were processed with a warning."""
        return self._named([judged.late for judged in self._judged] if self.spec.late == "warn" else [])

    def dropped(self) -> pl.DataFrame | None:
        """Late records that were dropped."""
        return self._named([judged.dropped for judged in self._judged])

    def _named(self, frames: list[pl.DataFrame]) -> pl.DataFrame | None:
        frames = [frame for frame in frames if not frame.is_empty()]
        if not frames:
            return None
        return self._directory.name(pl.concat(frames)).select(
            *_STREAM,
            "key",
            (pl.col("pos") // 2**64).cast(pl.Int64).alias("txid"),
            (pl.col("pos") % 2**64).cast(pl.Int64).alias("id"),
            time_us=pl.col("t"),
            closed_us=pl.col("closed"),
        )

    @cached_property
    def counted(self) -> pl.DataFrame | None:
        """Late and dropped records by stream, in this step."""
        counts = [
            frame.select(
                stream_of(pl.col("k")).alias("g"),
                late=pl.lit(int(name == "late"), dtype=pl.Int64),
                dropped=pl.lit(int(name == "dropped"), dtype=pl.Int64),
            )
            for judged in self._judged
            for name, frame in (("late", judged.late), ("dropped", judged.dropped))
            if not frame.is_empty()
        ]
        return _summed(counts) if counts else None

    @cached_property
    def counters(self) -> pl.DataFrame | None:
        """Late and dropped records by stream, in total."""
        if self.counted is None:
            return self._counters
        return _summed([self.counted] if self._counters is None else [self.counted, self._counters])

    def tables(self) -> dict[str, pl.DataFrame]:
        """The tables of the next state."""
        windows = self.windows
        none = pl.DataFrame(schema=_COUNTERS) if self.counters is None else self.counters
        found: dict[str, pl.DataFrame | None] = {"counters": none}
        match windows:
            case CountWindows():
                found |= {"open": windows.open, "counts": windows.counts}
            case RowsBuffer():
                found |= {"buffer": windows.buffer}
            case Groups():
                found |= {"groups": windows.table}
            case _:
                found |= {"open": windows.open, "sealed": windows.sealed, "clock": self._clock.table}
        if isinstance(windows, TimeWindows):
            found |= {"unkept": windows.unkept}
            if windows.empty is not None:
                found |= {"empty": windows.empty.table}
        if self._lifetime is not None:
            found |= {"seen": self._lifetime.table}
        kept = {name: table for name, table in found.items() if table is not None}
        self._directory.clean([table for table in kept.values() if "k" in table.columns])
        return kept | {"streams": self._directory.streams, "keys": self._directory.keys}

    def watermarks(self) -> dict[Stream, int]:
        """The watermark of each stream: with event time, its slowest key's."""
        if isinstance(self.windows, CountWindows | RowsBuffer | Groups):
            return {}
        marks = self._clock.table
        if isinstance(self._clock, EventClock):
            marks = marks.group_by(g=stream_of(pl.col("k"))).agg(pl.col("c").min())
        numbers = self._numbers
        return {numbers[g]: mark for g, mark in marks.iter_rows()}

    @cached_property
    def _numbers(self) -> dict[int, Stream]:
        return {g: (stream, version) for g, stream, version in self._directory.streams.iter_rows()}

    def by_stream(self, counters: pl.DataFrame | None) -> dict[Stream, tuple[int, int]]:
        """Late and dropped records by stream and version."""
        if counters is None:
            return {}
        return {self._numbers[g]: (late, dropped) for g, late, dropped in counters.iter_rows()}


def _summed(counters: list[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(counters).group_by("g").agg(pl.col("late").sum(), pl.col("dropped").sum())


def _highest(numbers: pl.Series) -> int:
    highest = numbers.max()
    return highest if isinstance(highest, int) else 0


def ticks_of(safe: Mapping[Stream, int]) -> pl.DataFrame:
    """Return streams with their safe time."""
    schema = {"stream": pl.Int64, "version": pl.Int32, "safe": pl.Int64}
    return pl.DataFrame([(*stream, at) for stream, at in safe.items()], schema=schema, orient="row")
