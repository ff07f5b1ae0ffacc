"""The next open window to be sealed, according to the records in the log."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
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
    """The records of one key."""

    name: str
    #: The time of the first record in the log.
    first_us: int
    #: Sorted.
    times: list[int]
    pushed_us: int

    @property
    def newest_us(self) -> int:
        return self.times[-1]


def next_window(body: Body, spec: WindowSpec, records: pl.DataFrame, tick: int) -> NextWindow | None:
    """Return the next window; `tick` is the safe time known to the pipeline."""
    if records.is_empty():
        return None
    keys = _keys(records)
    if spec.kind == "count":
        first = next(keys)  # the first record starts the oldest open window
        records_of_window = min(len(first.times), spec.rows)
        return NextWindow(
            first.name, first.first_us, None, records_of_window, first.newest_us, first.pushed_us, None
        )
    found = (_earliest(body, spec, key, _closed(spec, key, tick)) for key in keys)
    return min((window for window in found if window is not None), key=_end, default=None)


def open_windows(
    body: Body,
    spec: WindowSpec,
    records: pl.DataFrame,
    tick: int,
    *,
    most: int,
    keys: Collection[str] | None = None,
) -> Iterator[NextWindow]:
    """Return open time windows with records, key by key; no count windows.

    Of each key (or of each of `keys`) those that end first, at most this many: records that slide by a second
    may be in thousands of windows.
    """
    if keys is not None:
        records = records.filter(pl.col("key").is_in(list(keys)))
    if records.is_empty() or spec.kind in ("count", "rows", "group"):
        return
    for key in _keys(records):
        closed = _closed(spec, key, tick)
        if spec.kind == "session":
            spans = _sessions(spec, key.times)
        else:
            spans = _every_on_grid(body, spec, key.times, closed)
        given_out = (span for span in spans if span[1] > closed and _is_given_out(body, span[0]))
        for start, end in islice(given_out, most):
            yield _window(spec, key, start, end)


def _every_on_grid(
    body: Body, spec: WindowSpec, times: Sequence[int], closed: int
) -> Iterator[tuple[int, int]]:
    """The unsealed windows that contain one of these sorted times, in order."""
    after = closed - spec.duration if body.from_us is None else max(closed - spec.duration, body.from_us - 1)
    start = (after // spec.slide + 1) * spec.slide
    while (index := bisect_left(times, start)) < len(times) and (
        body.until_us is None or start < body.until_us
    ):
        if times[index] < start + spec.duration:
            yield start, start + spec.duration
            start += spec.slide
        else:  # no records until then
            start = ((times[index] - spec.duration) // spec.slide + 1) * spec.slide


def _end(window: NextWindow) -> int:
    assert window.end_us is not None
    return window.end_us


def _keys(records: pl.DataFrame) -> Iterator[_Key]:
    """Ordered by first record."""
    for (name,), rows in records.partition_by("key", as_dict=True, maintain_order=True).items():
        pushed: list[int] = rows["created_us"].to_list()
        times: list[int] = rows["time_us"].to_list()
        yield _Key(str(name), times[0], sorted(times), max(pushed))


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
    inside = bisect_left(key.times, end) - bisect_left(key.times, start)
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
    """The sessions of sorted times, in order."""
    start = end = None
    for time in times:
        if start is None or end is None or time >= end:
            if start is not None and end is not None:
                yield start, end
            start = time
        end = time + spec.gap
    if start is not None and end is not None:
        yield start, end
