"""The streams and jobs of a batch: sources, start positions and windows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import msgspec
import polars as pl

from ...sql import Plan, SqlError, thaw
from ...sql.running import RecordStage, RowStage, engine_spec, reads_headers
from ...store.definitions import Definition, Repeats, spec_of
from ...store.position import Position
from ...store.progress import End, ReadPoint, Stream
from ...windows import Engine, WindowSpec
from ...windows.errors import SpecError
from ...windows.membership import created_before, is_over


class _Planned(NamedTuple):
    """A plan, and its windows if it has state."""

    plan: Plan
    spec: WindowSpec | None


class Definitions:
    """All versions of all streams and jobs as of one seq."""

    def __init__(self, seq: int, rows: list[Definition], window_queues: dict[int, int]) -> None:
        self.seq = seq
        self.by_stream: dict[Stream, Definition] = {(row.stream_id, row.version): row for row in rows}
        self.window_queues = window_queues
        self._record_stages: dict[Stream, RecordStage] = {}
        self._row_stages: dict[Stream, RowStage] = {}

    @cached_property
    def plans(self) -> dict[Stream, Plan]:
        """The plan of each version that computes."""
        return {stream: each.plan for stream, each in self._planned.items() if isinstance(each, _Planned)}

    @cached_property
    def broken(self) -> dict[Stream, str]:
        """The versions that cannot be planned, with the reason: a newer release may have created them."""
        return {stream: reason for stream, reason in self._planned.items() if isinstance(reason, str)}

    @cached_property
    def _planned(self) -> dict[Stream, _Planned | str]:
        found: dict[Stream, _Planned | str] = {}
        for stream, row in self.by_stream.items():
            if row.body.query is None:
                continue
            try:
                plan = thaw(row.body.query)
                found[stream] = _Planned(plan, engine_spec(plan))
            except (SqlError, SpecError, msgspec.MsgspecError) as error:
                found[stream] = f"the job cannot be planned: {error}"
        return found

    @cached_property
    def specs(self) -> dict[Stream, WindowSpec]:
        """The windows of every version with state."""
        found = {}
        for stream, row in self.by_stream.items():
            if stream in self.broken:
                continue
            planned = self._planned.get(stream)
            spec = planned.spec if isinstance(planned, _Planned) else spec_of(row.body)
            if spec is not None:
                found[stream] = spec
        return found

    def record_stage(self, stream: Stream) -> RecordStage:
        """The first stage of a version that computes."""
        if stream not in self._record_stages:
            self._record_stages[stream] = RecordStage(
                self.plans[stream], *stream, as_columns=self._as_columns(stream)
            )
        return self._record_stages[stream]

    def row_stage(self, stream: Stream) -> RowStage:
        """The last stage of a version that computes."""
        if stream not in self._row_stages:
            self._row_stages[stream] = RowStage(
                self.plans[stream], *stream, as_columns=self._as_columns(stream)
            )
        return self._row_stages[stream]

    def _as_columns(self, stream: Stream) -> bool:
        """Whether rows go to files, which are typed; otherwise rows are JSON."""
        writes = self.by_stream[stream].body.writes
        return writes is not None and writes.connector == "files"

    @cached_property
    def queue_names(self) -> frozenset[str]:
        """The names of all source queues."""
        return frozenset(source.queue for row in self.by_stream.values() for source in row.body.sources)

    def alive(self, start: End) -> dict[Stream, Definition]:
        """Exclude versions that have emitted all their output before a batch with this start."""
        over = {stream for stream in self._ending if not self._goes_on(stream, start)}
        if not over:
            return self.by_stream
        return {stream: row for stream, row in self.by_stream.items() if stream not in over}

    @cached_property
    def _ending(self) -> list[Stream]:
        """The versions with an end."""
        return [
            stream
            for stream, row in self.by_stream.items()
            if row.body.until is not None or row.body.until_us is not None
        ]

    @cached_property
    def _engine(self) -> Engine:
        return Engine(self.specs)

    def engine(self, alive: Mapping[Stream, Definition]) -> Engine:
        """The engine of the live versions."""
        if alive is self.by_stream:
            return self._engine
        return Engine({stream: self.specs[stream] for stream in alive if stream in self.specs})

    def _goes_on(self, stream: Stream, start: End) -> bool:
        body = self.by_stream[stream].body
        following = self.by_stream.get((stream[0], stream[1] + 1))
        if body.until is not None and following is not None and following.body.emits_after is not None:
            # The next version emits all windows open then.
            return start.read_point(stream)[:2] < (body.until.txid, body.until.id)
        spec = self.specs.get(stream)
        return spec is None or not is_over(spec, body.until_us, start.tick)

    def before_us(self, stream: Stream) -> int | None:
        """The creation time after which no record is in a window of the version, if known from the clock."""
        spec = self.specs.get(stream)
        return None if spec is None else created_before(spec, self.by_stream[stream].body.until_us)

    def begin(self, stream: Stream) -> Position:
        """The position after which a stream starts reading."""
        return self._begins[stream]

    @cached_property
    def _begins(self) -> dict[Stream, Position]:
        return {
            stream: min((Position(each.txid, each.id) for each in row.body.sources), default=Position(0, 0))
            for stream, row in self.by_stream.items()
        }

    @cached_property
    def cuts(self) -> dict[Stream, list[Position]]:
        """The positions at which versions that compute end, or start to emit rows."""
        found = {}
        for stream, row in self.by_stream.items():
            cuts = [cut for cut in (row.body.until, row.body.emits_after) if cut is not None]
            if row.body.query is not None and cuts:
                found[stream] = [Position(cut.txid, cut.id) for cut in cuts]
        return found

    @cached_property
    def paused(self) -> frozenset[Stream]:
        """The paused versions that compute."""
        return frozenset(
            stream for stream, row in self.by_stream.items() if row.body.query is not None and row.body.paused
        )

    @cached_property
    def silent(self) -> list[Stream]:
        """The versions that emit nothing before a position."""
        return [stream for stream, row in self.by_stream.items() if row.body.emits_after is not None]

    @cached_property
    def bounds(self) -> pl.DataFrame:
        """The time bounds of emitted windows, by version, if any."""
        schema = {"stream": pl.Int64, "version": pl.Int32, "from_us": pl.Int64, "until_us": pl.Int64}
        bounds = [
            (*stream, row.body.from_us, row.body.until_us)
            for stream, row in self.by_stream.items()
            if row.body.from_us is not None or row.body.until_us is not None
        ]
        return pl.DataFrame(bounds, schema=schema, orient="row")

    @cached_property
    def output_queues(self) -> pl.DataFrame:
        """The output queue of each stream."""
        schema = {"stream": pl.Int64, "queue_id": pl.Int64}
        return pl.DataFrame(list(self.window_queues.items()), schema=schema, orient="row")

    def is_silent(self, stream: Stream, end: End) -> bool:
        """Whether the version emits nothing in a batch with this end."""
        after = self.by_stream[stream].body.emits_after
        return after is not None and end.read_point(stream)[:2] <= (after.txid, after.id)

    def repeats(self, stream: Stream, point: ReadPoint) -> Repeats | None:
        """The rows of a batch starting at a position that an earlier version may have emitted."""
        repeats = self.by_stream[stream].body.repeats
        is_past = repeats is None or (point[:2] >= (repeats.txid, repeats.id) and point[2] >= repeats.us)
        return None if is_past else repeats

    def queues(self, streams: set[Stream]) -> list[int]:
        """The source queues of some streams."""
        if len(streams) == len(self.by_stream):
            return self._all_queues
        return sorted(set().union(*(self._queues_of[each] for each in streams)))

    @cached_property
    def _queues_of(self) -> dict[Stream, tuple[int, ...]]:
        return {
            stream: tuple(source.queue_id for source in row.body.sources)
            for stream, row in self.by_stream.items()
        }

    @cached_property
    def _all_queues(self) -> list[int]:
        return sorted(set().union(*self._queues_of.values()))

    @cached_property
    def names(self) -> dict[int, str]:
        """The names of all source queues, by id."""
        return {
            source.queue_id: source.queue for row in self.by_stream.values() for source in row.body.sources
        }

    @cached_property
    def plain(self) -> list[Stream]:
        """The versions with windows over whole messages, sorted."""
        return sorted(stream for stream in self.by_stream if stream not in self.plans)

    @cached_property
    def reading_headers(self) -> frozenset[Stream]:
        """The versions that read message headers."""
        return frozenset(stream for stream, plan in self.plans.items() if reads_headers(plan))

    @cached_property
    def readers(self) -> dict[int, list[Stream]]:
        """The readers of each queue, sorted."""
        found: dict[int, list[Stream]] = {}
        for stream in sorted(self.by_stream):
            for queue_id in self._queues_of[stream]:
                found.setdefault(queue_id, []).append(stream)
        return found

    @cached_property
    def decoded_queues(self) -> frozenset[int]:
        """The queues with payload readers."""
        return frozenset(
            source.queue_id
            for row in self.by_stream.values()
            if row.body.query is not None or row.body.event_time is not None
            for source in row.body.sources
        )
