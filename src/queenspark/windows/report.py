"""Monitoring data about a step."""

from __future__ import annotations

from functools import cached_property

from .moves import Stream
from .state import State
from .step import Step
from .summary import Open


class Report:
    """Counters of the streams in a step, and the open windows of all streams."""

    def __init__(self, state: State, steps: list[Step]) -> None:
        self._state = state
        self.late: dict[Stream, int] = {}  # in total
        self.dropped: dict[Stream, int] = {}
        self.late_now: dict[Stream, int] = {}  # in this step
        self.dropped_now: dict[Stream, int] = {}
        self.watermark: dict[Stream, int] = {}
        for step in steps:
            for stream, (late, dropped) in step.by_stream(step.counters).items():
                self.late[stream], self.dropped[stream] = late, dropped
            for stream, (late, dropped) in step.by_stream(step.counted).items():
                self.late_now[stream], self.dropped_now[stream] = late, dropped
            self.watermark |= step.watermarks()

    @cached_property
    def open(self) -> dict[Stream, Open]:
        """The unsealed windows, by stream."""
        return {stream: open_ for each in self._state.summaries() for stream, open_ in each.open.items()}

    def open_of(self, stream: Stream, spec: str | None) -> Open | None:
        """The unsealed windows of one stream; `spec` is its own, as JSON."""
        return None if spec is None else self._state.summary(spec).open.get(stream)

    @cached_property
    def open_windows(self) -> int:
        """The number of unsealed windows."""
        return self._state.overview.open_windows

    @cached_property
    def next_close_us(self) -> int | None:
        """The earliest safe time that can seal a window."""
        return self._state.overview.next_close_us

    @cached_property
    def state_bytes(self) -> int:
        """Size of the state in memory."""
        return self._state.size()
