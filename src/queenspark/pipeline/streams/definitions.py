"""The streams as a batch sees them: who reads which queue, from where, and with what windows."""

from __future__ import annotations

from functools import cached_property

from ...store.definitions import Definition, spec_of
from ...store.position import Position
from ...store.progress import Stream
from ...windows import WindowSpec
from ...windows.membership import created_before, is_over


class Definitions:
    """All versions of all streams as of one change of the definitions."""

    def __init__(self, seq: int, rows: list[Definition], window_queues: dict[int, int]) -> None:
        self.seq = seq
        self.by_stream: dict[Stream, Definition] = {(row.stream_id, row.version): row for row in rows}
        self.window_queues = window_queues

    @cached_property
    def specs(self) -> dict[Stream, WindowSpec]:
        """The windows of every stream and version."""
        return {stream: spec_of(row.body) for stream, row in self.by_stream.items()}

    @cached_property
    def queue_names(self) -> frozenset[str]:
        """The names of all queues that some stream reads."""
        return frozenset(source.queue for row in self.by_stream.values() for source in row.body.sources)

    def alive(self, tick: int) -> dict[Stream, Definition]:
        """Without the versions that have given out their last window at that safe time."""
        return {
            stream: row
            for stream, row in self.by_stream.items()
            if not is_over(self.specs[stream], row.body.until_us, tick)
        }

    def before_us(self, stream: Stream) -> int | None:
        """From when on created records are in no window of the version, where the clock alone tells."""
        return created_before(self.specs[stream], self.by_stream[stream].body.until_us)

    def begin(self, stream: Stream) -> Position:
        """The position after which a stream begins to read."""
        sources = self.by_stream[stream].body.sources
        return min((Position(source.txid, source.id) for source in sources), default=Position(0, 0))

    def queues(self, streams: set[Stream]) -> list[int]:
        """The queues that some streams read."""
        return sorted({source.queue_id for each in streams for source in self.by_stream[each].body.sources})
