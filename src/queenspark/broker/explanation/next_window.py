"""The next open window to be sealed, according to the records in the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import polars as pl

from ...store.definitions import Body
from ...windows import WindowSpec


class NextWindow(NamedTuple):
    """The open window that ends first. Times are in microseconds."""

    key: str
    start_us: int
    #: None for a count window.
    end_us: int | None
    records: int
    #: The newest time of its key, which advances event time.
    newest_us: int
    #: Push time of the newest record of its key.
    pushed_us: int
    #: The safe time that seals it, if no more records arrive; None for a count window.
    due_us: int | None


class _Key(NamedTuple):
    """The records of one key, in log order."""

    name: str
    times: list[int]
    pushed_us: int

    @property
    def newest_us(self) -> int:
        return max(self.times)


def next_window(body: Body, spec: WindowSpec, records: pl.DataFrame, tick: int) -> NextWindow | None:
    """Return the next window; `tick` is the safe time known to the pipeline."""
    if records.is_empty():
        return None
    keys = _keys(records)
    if spec.kind == "count":
        first = next(keys)  # the first record starts the oldest open window
        records_of_window = min(len(first.times), spec.rows)
        return NextWindow(
            first.name, first.times[0], None, records_of_window, first.newest_us, first.pushed_us, None
        )
    found = (_earliest(body, spec, key, _closed(spec, key, tick)) for key in keys)
    return min((window for window in found if window is not None), key=_end, default=None)


def open_windows(body: Body, spec: WindowSpec, records: pl.DataFrame, tick: int) -> Iterator[NextWindow]:
    """Return all open time windows with records, key by key; no count windows."""
    if records.is_empty() or spec.kind in ("count", "rows", "group"):
        return
    for key in _keys(records):
        closed = _closed(spec, key, tick)
        spans = _sessions(spec, key.times) if spec.kind == "session" else _every_on_grid(spec, key.times)
        for start, end in sorted(set(spans)):
            if end > closed and _is_given_out(body, start):
                yield _window(spec, key, start, end)


def _every_on_grid(spec: WindowSpec, times: Iterable[int]) -> Iterator[tuple[int, int]]:
    """All windows that contain one of these times."""
    for step in {time // spec.slide for time in times}:
        for back in range(-(-spec.duration // spec.slide)):
            start = (step - back) * spec.slide
            if any(start <= time < start + spec.duration for time in times):
                yield start, start + spec.duration


def _end(window: NextWindow) -> int:
    assert window.end_us is not None
    return window.end_us


def _keys(records: pl.DataFrame) -> Iterator[_Key]:
    """Ordered by first record."""
    for (name,), rows in records.partition_by("key", as_dict=True, maintain_order=True).items():
        pushed: list[int] = rows["created_us"].to_list()
        yield _Key(str(name), rows["time_us"].to_list(), max(pushed))


def _closed(spec: WindowSpec, key: _Key, tick: int) -> int:
    """The time up to which the windows of a key are sealed; see `windows/clock.py`."""
    if spec.clock == "ingest":
        return tick - spec.grace_us
    mark = key.newest_us - spec.grace_us
    if tick - key.pushed_us < spec.idle:
        return mark
    last = key.newest_us + spec.gap if spec.kind == "session" else _last_end(spec, key.newest_us)
    return max(mark, min(tick - spec.grace_us, last))


def _last_end(spec: WindowSpec, time: int) -> int:
    """The end of the last window that contains a time."""
    return time // spec.slide * spec.slide + spec.duration


def _earliest(body: Body, spec: WindowSpec, key: _Key, closed: int) -> NextWindow | None:
    spans = _sessions(spec, key.times) if spec.kind == "session" else _on_grid(spec, key.times, closed)
    chosen = min((span for span in spans if span[1] > closed and _is_given_out(body, span[0])), default=None)
    if chosen is None:
        return None
    return _window(spec, key, *chosen)


def _window(spec: WindowSpec, key: _Key, start: int, end: int) -> NextWindow:
    due = end + spec.grace_us
    if spec.clock == "event":
        due = max(due, key.pushed_us + spec.idle)
    inside = sum(start <= time < end for time in key.times)
    return NextWindow(key.name, start, end, inside, key.newest_us, key.pushed_us, due)


def _is_given_out(body: Body, start: int) -> bool:
    return (body.from_us is None or start >= body.from_us) and (
        body.until_us is None or start < body.until_us
    )


def _on_grid(spec: WindowSpec, times: Iterable[int], closed: int) -> Iterator[tuple[int, int]]:
    """For each time the first unsealed window that contains it."""
    for time in times:
        after = max(closed, time)
        end = ((after - spec.duration) // spec.slide + 1) * spec.slide + spec.duration
        if end - spec.duration <= time:
            yield end - spec.duration, end


def _sessions(spec: WindowSpec, times: Iterable[int]) -> Iterator[tuple[int, int]]:
    start = end = None
    for time in sorted(times):
        if start is None or end is None or time >= end:
            if start is not None and end is not None:
                yield start, end
            start = time
        end = time + spec.gap
    if start is not None and end is not None:
        yield start, end
