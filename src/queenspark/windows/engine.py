"""The engine: records and ticks in, emitted windows and the next state out.

One call serves many streams. Streams with the same spec are worked on together; there is a loop over
distinct specs, never over keys or records. Records that come when a window of theirs is closed have to
be judged in the order of the log: they cut the records of their key into rounds, which are worked on one
after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import polars as pl

from .clock import EventClock, IngestClock
from .counts import CountWindows, RowsBuffer
from .directory import Directory, stream_of
from .empty import EmptyWindows
from .late import Judged
from .layout import KEY, Layout
from .moves import Stream, settled
from .sessions import Sessions
from .spec import WindowSpec
from .state import State
from .time_windows import TimeWindows

_STREAM = ["stream", "version"]
_DEAD = [*_STREAM, "key", "txid", "id"]
_COUNTERS = {"g": pl.Int64, "late": pl.Int64, "dropped": pl.Int64}
_LATE_LOG = {
    "stream": pl.Int64, "version": pl.Int32, "key": pl.String, "txid": pl.Int64, "id": pl.Int64,
    "time_us": pl.Int64, "closed_us": pl.Int64,
}  # fmt: skip


class Open(NamedTuple):
    """The open windows of a stream: how many, and the position of the first record in one of them."""

    windows: int
    txid: int
    id: int


class Report:
    """What people want to know about a step; what costs a look at all open windows, only when asked for."""

    def __init__(self, state: State, steps: list[_Step]) -> None:
        self._state = state
        self._steps = steps
        self.late: dict[Stream, int] = {}  # since the beginning
        self.dropped: dict[Stream, int] = {}
        self.late_now: dict[Stream, int] = {}  # in this step
        self.dropped_now: dict[Stream, int] = {}
        self.watermark: dict[Stream, int] = {}
        for step in steps:
            for stream, version, late, dropped in step.named_counters().iter_rows():
                self.late[stream, version], self.dropped[stream, version] = late, dropped
            for stream, version, late, dropped in step.named_counters(step.counted()).iter_rows():
                self.late_now[stream, version], self.dropped_now[stream, version] = late, dropped
            self.watermark |= step.watermarks()

    @cached_property
    def open(self) -> dict[Stream, Open]:
        """The windows that are not sealed yet, by stream."""
        return {stream: open_ for step in self._steps for stream, open_ in step.open_windows().items()}

    @cached_property
    def open_windows(self) -> int:
        """Windows that are not sealed yet."""
        return sum(open_.windows for open_ in self.open.values())

    @cached_property
    def next_close_us(self) -> int | None:
        """The earliest safe time that can seal a window."""
        closes = [closes_at for step in self._steps if (closes_at := step.next_close()) is not None]
        return min(closes, default=None)

    @cached_property
    def state_bytes(self) -> int:
        """Size of the state in memory."""
        return self._state.size()


class Result(NamedTuple):
    """What a step gave."""

    state: State
    rows: list[pl.DataFrame]
    dead: pl.DataFrame  # records without a time
    late_log: pl.DataFrame  # late records of streams that warn
    dropped: pl.DataFrame  # late records that are left out of a window, of all streams
    report: Report


class Engine:
    """Windows over streams, by the spec of each stream and version."""

    def __init__(self, specs: Mapping[Stream, WindowSpec]) -> None:
        self._streams: dict[str, list[Stream]] = {}
        self._specs: dict[str, WindowSpec] = {}
        self._homes = {stream: spec.to_json() for stream, spec in specs.items()}
        for stream, spec in specs.items():
            text = self._homes[stream]
            self._specs[text] = spec
            self._streams.setdefault(text, []).append(stream)

    def advance(
        self, state: State | None, batch: pl.DataFrame, safe_us: int | Mapping[Stream, int]
    ) -> Result:
        """Take a batch of records in log order, then a tick."""
        state = settled(state or State(), self._homes)
        steps: list[_Step] = []
        tables: dict[str, dict[str, pl.DataFrame]] = {}
        for text, spec in self._specs.items():
            streams = self._ticks(self._streams[text], safe_us)
            step = _Step(spec, state.tables.get(text, {}), batch, streams)
            step.run()
            steps.append(step)
            tables[text] = step.tables()
        after = State(tables)
        return Result(
            after,
            [frame for step in steps for frame in step.emitted() if not frame.is_empty()],
            pl.concat([batch.clear().select(_DEAD), *(step.dead for step in steps)]),
            pl.concat([pl.DataFrame(schema=_LATE_LOG), *(step.late_log() for step in steps)]),
            pl.concat([pl.DataFrame(schema=_LATE_LOG), *(step.dropped() for step in steps)]),
            Report(after, steps),
        )

    def _ticks(self, streams: list[Stream], safe_us: int | Mapping[Stream, int]) -> pl.DataFrame:
        known = [
            (*stream, safe_us if isinstance(safe_us, int) else safe_us[stream])
            for stream in streams
            if isinstance(safe_us, int) or stream in safe_us
        ]
        schema = {"stream": pl.Int64, "version": pl.Int32, "safe": pl.Int64}
        return pl.DataFrame(known, schema=schema, orient="row")


class _Step:
    """One batch and tick for all streams of one spec."""

    def __init__(
        self, spec: WindowSpec, tables: dict[str, pl.DataFrame], batch: pl.DataFrame, streams: pl.DataFrame
    ) -> None:
        self.spec = spec
        table = tables.get
        self._directory = Directory(table("streams"), table("keys"))
        self.streams = self._directory.number_streams(streams)
        mine = self._mine(batch)
        self.dead = mine.clear().select(_DEAD)
        if spec.clock == "event":
            self.dead = mine.filter(pl.col("event_us").is_null()).select(_DEAD)
            mine = mine.filter(pl.col("event_us").is_not_null())
        layout = Layout(spec, dict(mine.schema))
        mine = (
            self._directory.number_keys(mine)
            if not mine.is_empty()
            else mine.with_columns(k=pl.lit(0, dtype=pl.Int64))
        )
        self._records = layout.records(mine)
        if not self._records["pos"].is_sorted():
            self._records = self._records.sort("pos")
        self._clock = (IngestClock if spec.clock == "ingest" else EventClock)(spec, table("clock"))
        self._counters = table("counters")
        self._judged: list[Judged] = []
        self.windows: TimeWindows | Sessions | CountWindows | RowsBuffer
        if spec.kind == "count":
            self.windows = CountWindows(layout, self._directory, table("open"), table("counts"))
        elif spec.kind == "rows":
            self.windows = RowsBuffer(layout, self._directory, table("buffer"))
        elif spec.kind == "session":
            self.windows = Sessions(layout, self._directory, table("open"), table("sealed"))
        else:
            empty = EmptyWindows(spec, table("empty")) if spec.emit_empty else None
            self.windows = TimeWindows(
                layout, self._directory, table("open"), table("sealed"), self._records, empty
            )

    def _mine(self, batch: pl.DataFrame) -> pl.DataFrame:
        """The records of this spec's streams, with the stream's number `g`."""
        if self.streams.height == 1:
            stream, version, g = self.streams.select(*_STREAM, "g").row(0)
            is_mine = (pl.col("stream") == stream) & (pl.col("version") == version)
            return batch.filter(is_mine).with_columns(g=pl.lit(g, dtype=pl.Int64))
        numbers = self.streams.select(*_STREAM, "g")
        return batch.join(numbers, on=_STREAM, how="inner", maintain_order="left")

    def run(self) -> None:
        """Records, then the tick."""
        windows = self.windows
        if isinstance(windows, CountWindows | RowsBuffer):
            windows.add(self._records)
            return
        if not self._records.is_empty():
            self._epochs(windows)
        windows.seal(self._clock.tick(self.streams))
        forgettable = self._clock.forgettable(self.streams)
        if forgettable is not None and not forgettable.is_empty():
            self._forget(windows, forgettable)
        marks = self._clock.marks() if isinstance(self._clock, EventClock) else self._clock.table
        windows.purge(marks)

    def _epochs(self, windows: TimeWindows | Sessions) -> None:
        """Cut where a key has been silent for so long that it may be forgotten."""
        judged = self._clock.judge(self._records)
        if not judged["forget"].any():
            self._rounds(windows, judged)
            return
        epoch = pl.col("forget").cast(pl.Int64).cum_sum().over(KEY)
        numbered = judged.with_columns(epoch=epoch)
        for number in range(_highest(numbered["epoch"]) + 1):
            part = numbered.filter(pl.col("epoch") == number)
            returning = part.filter("forget")
            if not returning.is_empty():
                # The mark of its silence only: its own time counts after it has been forgotten, or not.
                mark = pl.col("created") - self.spec.grace_us
                windows.seal(
                    returning.select("k", closed=mark, cap=mark - pl.col("silence") + self.spec.keep)
                )
                self._forget(windows, returning.select(KEY))
            records = part.select(self._records.columns)
            self._rounds(windows, self._clock.judge(records))

    def _forget(self, windows: TimeWindows | Sessions, keys: pl.DataFrame) -> None:
        """Forget keys, unless they have an open window."""
        if windows.open is not None:
            keys = keys.join(windows.open.select(KEY).unique(), on=KEY, how="anti")
        windows.forget(keys)
        self._clock.forget(keys)

    def _rounds(self, windows: TimeWindows | Sessions, judged: pl.DataFrame) -> None:
        """Work on the records of each key in order, cut at those that have to be judged by themselves."""
        judged = judged.with_columns(behind=windows.behind())
        if not judged["behind"].any():
            self._round(windows, judged)
            return
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

    def late_log(self) -> pl.DataFrame:
        """Late records that were processed with a warning."""
        return self._named([judged.late for judged in self._judged] if self.spec.late == "warn" else [])

    def dropped(self) -> pl.DataFrame:
        """Late records that were left out."""
        return self._named([judged.dropped for judged in self._judged])

    def _named(self, frames: list[pl.DataFrame]) -> pl.DataFrame:
        frames = [frame for frame in frames if not frame.is_empty()]
        if not frames:
            return pl.DataFrame(schema=_LATE_LOG)
        return self._directory.name(pl.concat(frames)).select(
            *_STREAM,
            "key",
            (pl.col("pos") // 2**64).cast(pl.Int64).alias("txid"),
            (pl.col("pos") % 2**64).cast(pl.Int64).alias("id"),
            time_us=pl.col("t"),
            closed_us=pl.col("closed"),
        )

    def counted(self) -> pl.DataFrame:
        """Late and dropped records by stream, in this step."""
        counts = [
            getattr(judged, name).select(
                stream_of(pl.col("k")).alias("g"),
                late=pl.lit(int(name == "late"), dtype=pl.Int64),
                dropped=pl.lit(int(name == "dropped"), dtype=pl.Int64),
            )
            for judged in self._judged
            for name in ("late", "dropped")
        ]
        return _summed([pl.DataFrame(schema=_COUNTERS), *counts])

    def counters(self) -> pl.DataFrame:
        """Late and dropped records by stream, since the beginning."""
        before = [] if self._counters is None else [self._counters]
        return _summed([self.counted(), *before])

    def tables(self) -> dict[str, pl.DataFrame]:
        """The tables of the next state."""
        windows = self.windows
        found: dict[str, pl.DataFrame | None] = {"counters": self.counters()}
        match windows:
            case CountWindows():
                found |= {"open": windows.open, "counts": windows.counts}
            case RowsBuffer():
                found |= {"buffer": windows.buffer}
            case _:
                found |= {"open": windows.open, "sealed": windows.sealed, "clock": self._clock.table}
        if isinstance(windows, TimeWindows) and windows.empty is not None:
            found |= {"empty": windows.empty.table}
        kept = {name: table for name, table in found.items() if table is not None}
        self._directory.clean([table for table in kept.values() if "k" in table.columns])
        return kept | {"streams": self._directory.streams, "keys": self._directory.keys}

    def _open(self) -> pl.DataFrame | None:
        table = None if isinstance(self.windows, RowsBuffer) else self.windows.open
        return None if table is None or table.is_empty() else table

    def open_windows(self) -> dict[Stream, Open]:
        """The open windows by stream."""
        table = self._open()
        if table is None:
            return {}
        number = "number" if isinstance(self.windows, CountWindows) else "start"
        counted = (
            table.group_by("k", number)
            .agg(pl.col("first").min())
            .group_by(g=stream_of(pl.col("k")))
            .agg(pl.len(), pl.col("first").min())
            .join(self._directory.streams, on="g")
        )
        rows = counted.select(
            *_STREAM, "len", pl.col("first") // 2**64, (pl.col("first") % 2**64).alias("id")
        )
        return {(stream, version): Open(*counts) for stream, version, *counts in rows.iter_rows()}

    def next_close(self) -> int | None:
        """The earliest time at which safe time can seal a window."""
        tables = []
        table = self._open()
        if table is not None and not isinstance(self.windows, CountWindows):
            tables.append(table.select("k", "end"))
        if isinstance(self.windows, TimeWindows) and self.windows.empty is not None:
            tables.append(self.windows.empty.next_ends())
        if not tables:
            return None
        ends = pl.concat(tables)
        closes = pl.col("end") + self.spec.grace_us
        if isinstance(self._clock, EventClock):
            ends = ends.join(self._clock.table, on="k", how="left")
            closes = pl.max_horizontal(closes, pl.col("l") + self.spec.idle)
        found = ends.select(closes.min()).item()
        return None if found is None else int(found)

    def watermarks(self) -> dict[Stream, int]:
        """How far each stream is closed: with event time, its slowest key."""
        if isinstance(self.windows, CountWindows | RowsBuffer):
            return {}
        table = self._clock.table
        column = "closed" if isinstance(self._clock, IngestClock) else "c"
        marks = table if column == "closed" else table.with_columns(g=stream_of(pl.col("k")))
        lowest = marks.group_by("g").agg(pl.col(column).min().alias("mark"))
        named = lowest.join(self._directory.streams, on="g").select(*_STREAM, "mark")
        return {(stream, version): mark for stream, version, mark in named.iter_rows()}

    def named_counters(self, counters: pl.DataFrame | None = None) -> pl.DataFrame:
        """The counters by stream and version."""
        counters = self.counters() if counters is None else counters
        return counters.join(self._directory.streams, on="g").select(*_STREAM, "late", "dropped")


def _summed(counters: list[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(counters).group_by("g").agg(pl.col("late").sum(), pl.col("dropped").sum())


def _highest(numbers: pl.Series) -> int:
    highest = numbers.max()
    return highest if isinstance(highest, int) else 0
