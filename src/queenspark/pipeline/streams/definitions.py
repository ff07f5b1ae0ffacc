"""The streams and jobs as a batch sees them: who reads which queue, from where, and with what windows."""

from __future__ import annotations

from functools import cached_property

import msgspec

from ...sql import Plan, SqlError, thaw
from ...sql.running import RecordStage, RowStage, engine_spec
from ...store.definitions import Definition, spec_of
from ...store.position import Position
from ...store.progress import End, Stream
from ...windows import WindowSpec
from ...windows.membership import created_before, is_over


class Definitions:
    """All versions of all streams and jobs as of one change of the definitions."""

    def __init__(self, seq: int, rows: list[Definition], window_queues: dict[int, int]) -> None:
        self.seq = seq
        self.by_stream: dict[Stream, Definition] = {(row.stream_id, row.version): row for row in rows}
        self.window_queues = window_queues
        self._record_stages: dict[Stream, RecordStage] = {}
        self._row_stages: dict[Stream, RowStage] = {}

    @cached_property
    def plans(self) -> dict[Stream, Plan]:
        """What each version that computes does."""
        return {stream: plan for stream, plan in self._planned.items() if isinstance(plan, Plan)}

    @cached_property
    def broken(self) -> dict[Stream, str]:
        """The versions that cannot be planned, and why: a newer version may have made them."""
        return {stream: reason for stream, reason in self._planned.items() if isinstance(reason, str)}

    @cached_property
    def _planned(self) -> dict[Stream, Plan | str]:
        found: dict[Stream, Plan | str] = {}
        for stream, row in self.by_stream.items():
            if row.body.query is None:
                continue
            try:
                found[stream] = thaw(row.body.query)
            except (SqlError, msgspec.MsgspecError) as error:
                found[stream] = f"the job cannot be planned: {error}"
        return found

    @cached_property
    def specs(self) -> dict[Stream, WindowSpec]:
        """The windows of every version that has state."""
        found = {}
        for stream, row in self.by_stream.items():
            if stream in self.broken:
                continue
            plan = self.plans.get(stream)
            spec = spec_of(row.body) if plan is None else engine_spec(plan)
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
        """Whether rows go to files, which have types of their own."""
        writes = self.by_stream[stream].body.writes
        return writes is not None and writes.connector == "files"

    @cached_property
    def queue_names(self) -> frozenset[str]:
        """The names of all queues that some stream reads."""
        return frozenset(source.queue for row in self.by_stream.values() for source in row.body.sources)

    def alive(self, start: End) -> dict[Stream, Definition]:
        """Without the versions that have given out all that they had before a batch with that start."""
        return {stream: row for stream, row in self.by_stream.items() if self._goes_on(stream, start)}

    def _goes_on(self, stream: Stream, start: End) -> bool:
        body = self.by_stream[stream].body
        following = self.by_stream.get((stream[0], stream[1] + 1))
        if body.until is not None and following is not None and following.body.emits_after is not None:
            # The next version gives out all that is open then.
            return start.place(stream)[:2] < (body.until.txid, body.until.id)
        spec = self.specs.get(stream)
        return spec is None or not is_over(spec, body.until_us, start.tick)

    def before_us(self, stream: Stream) -> int | None:
        """From when on created records are in no window of the version, where the clock alone tells."""
        spec = self.specs.get(stream)
        return None if spec is None else created_before(spec, self.by_stream[stream].body.until_us)

    def begin(self, stream: Stream) -> Position:
        """The position after which a stream begins to read."""
        sources = self.by_stream[stream].body.sources
        return min((Position(source.txid, source.id) for source in sources), default=Position(0, 0))

    def cut(self, stream: Stream, place: Position) -> Position | None:
        """The next position at which a version ends, or begins to give out rows, if there is one."""
        body = self.by_stream[stream].body
        if body.query is None:
            return None
        cuts = [Position(cut.txid, cut.id) for cut in (body.until, body.emits_after) if cut is not None]
        return min((cut for cut in cuts if cut > place), default=None)

    def is_silent(self, stream: Stream, end: End) -> bool:
        """Whether nothing of the version comes out of a batch with that end."""
        after = self.by_stream[stream].body.emits_after
        return after is not None and end.place(stream)[:2] <= (after.txid, after.id)

    def queues(self, streams: set[Stream]) -> list[int]:
        """The queues that some streams read."""
        return sorted({source.queue_id for each in streams for source in self.by_stream[each].body.sources})

    @cached_property
    def decoded_queues(self) -> frozenset[int]:
        """The queues of which payloads are read."""
        return frozenset(
            source.queue_id
            for row in self.by_stream.values()
            if row.body.query is not None or row.body.event_time is not None
            for source in row.body.sources
        )
