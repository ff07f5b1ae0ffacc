"""The engine: records and ticks in, emitted windows and the next state out.

One call serves many streams. Streams with the same spec are processed together; there is a loop over distinct
specs, never over keys or records. A spec without records and with nothing due is skipped. Records for closed
windows have to be judged in log order: they split the records of their key into rounds, which are processed
one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from .directory import Directory
from .group import Group
from .groups import Groups
from .layout import layout_of
from .moves import Stream, settled
from .records import by_group
from .report import Report
from .spec import WindowSpec
from .state import State
from .step import DEAD, LATE_LOG, Step

Safe = int | Mapping[Stream, int]


class Result(NamedTuple):
    """The result of a step."""

    state: State
    rows: list[pl.DataFrame]
    dead: pl.DataFrame  # records without a usable time
    late_log: pl.DataFrame  # late records of streams with the policy `warn`
    dropped: pl.DataFrame  # late records excluded from a window, of all streams
    report: Report
    #: Failed streams, with the reason. Their state is unchanged.
    failed: dict[Stream, str]


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
        self._order = {text: number for number, text in enumerate(self._specs)}

    def advance(
        self,
        state: State | None,
        batch: pl.DataFrame | Sequence[pl.DataFrame],
        safe_us: Safe,
        was_us: Safe | None = None,
    ) -> Result:
        """Process a batch of records in log order, then a tick.

        `batch` is one frame or several, each with the records of some streams and the inputs of their specs.
        `safe_us` is the safe time after the batch, for all streams or by stream; a stream without one is
        skipped. `was_us` is the safe time before the batch, likewise; if given, idle specs are skipped, which
        affects only the time of expiry.
        """
        state = settled(state or State(), self._homes)
        frames = [batch] if isinstance(batch, pl.DataFrame) else batch
        taking_part = self._homes if isinstance(safe_us, int) else safe_us
        records = by_group(frames, taking_part, self._homes)
        tables = dict(state.tables)
        touched: list[str] = []
        steps: list[Step] = []
        failed: dict[Stream, str] = {}
        for text in self._specs if was_us is None else self._wanted(state, records, safe_us):
            safe = _of(self._streams[text], safe_us)
            mine = records.get(text, [])
            if was_us is not None and not mine and not state.summary(text).due(safe):
                continue
            was = None if was_us is None else _of(self._streams[text], was_us)
            group = Group(self._specs[text], state.tables.get(text, {}), mine, safe, was)
            steps += group.steps
            failed |= group.failed
            if group.tables:
                tables[text] = group.tables
                touched.append(text)
        after = state.stepped(tables, touched)
        return Result(
            after,
            [frame for step in steps for frame in step.emitted() if not frame.is_empty()],
            _concat(DEAD, [step.dead for step in steps]),
            _concat(LATE_LOG, [step.late_log() for step in steps]),
            _concat(LATE_LOG, [step.dropped() for step in steps]),
            Report(after, steps),
            failed,
        )

    def _wanted(self, state: State, records: Mapping[str, Any], safe_us: Safe) -> list[str]:
        """Return the specs with records or with something due, in order."""
        latest = safe_us if isinstance(safe_us, int) else max(safe_us.values(), default=None)
        due = state.overview.due(latest) if latest is not None else []
        return sorted({*records, *due}, key=self._order.__getitem__)

    def home(self, stream: Stream) -> str | None:
        """The spec of a stream, as JSON."""
        return self._homes.get(stream)

    def finish(self, state: State) -> list[pl.DataFrame]:
        """Return the rows of groups emitted at the end of input."""
        frames: list[pl.DataFrame] = []
        for text, spec in self._specs.items():
            tables = state.tables.get(text)
            if spec.kind == "group" and tables is not None:
                directory = Directory(tables["streams"], tables["keys"])
                groups = Groups(layout_of(spec), directory, tables.get("groups"))
                groups.finish()
                frames += groups.emitted.frames
        return frames


def _concat(schema: Mapping[str, Any], frames: Sequence[pl.DataFrame | None]) -> pl.DataFrame:
    found = [frame for frame in frames if frame is not None and not frame.is_empty()]
    return pl.concat([pl.DataFrame(schema=schema), *found])


def _of(streams: Iterable[Stream], safe_us: Safe) -> dict[Stream, int]:
    """The safe time of each stream that has one."""
    if isinstance(safe_us, int):
        return dict.fromkeys(streams, safe_us)
    return {stream: safe_us[stream] for stream in streams if stream in safe_us}
