"""Determines the end of a batch: all partitions up to the same time, within the batch's row limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

Offsets = Sequence[int]


class Log(Protocol):
    """The partitions of a topic."""

    def at(self, time: int) -> Offsets:
        """Return each partition's first offset with this timestamp or later, or else its end."""


class Cut(NamedTuple):
    """The end of a batch."""

    offsets: tuple[int, ...]
    time: int
    has_more: bool


def cut(log: Log, starts: Offsets, ends: Offsets, time: int, now: int, rows: int, step: int = 0) -> Cut:
    """Return the end of a batch that starts at `starts` and spans at most `rows` offsets.

    `time` is the time of the previous batch and `now` the wall clock, both in milliseconds. `step` is the
    estimated time span of the batch.
    """
    latest = max(time, now)
    if _size(starts, ends) <= rows:
        return Cut(tuple(ends), latest, False)
    upto = _within(log.at(latest), starts, ends)
    if _size(starts, upto) <= rows:
        # The rest has timestamps in the future. Read it now rather than when the clock gets there.
        return Cut(_shared(upto, ends, rows - _size(starts, upto)), latest, True)
    reached = _within(log.at(time), starts, ends)
    if _size(starts, reached) > rows:
        # Records appended with timestamps that were already read.
        return Cut(_shared(starts, reached, rows), time, True)
    low, high = time, latest
    probe = low + step
    while high - low > 1 and _size(starts, reached) < max(1, rows // 2):
        probe = probe if low < probe < high else (low + high) // 2
        found = _within(log.at(probe), starts, ends)
        if _size(starts, found) <= rows:
            low, reached = probe, found
            probe = low + 2 * (low - time)
        else:
            high, upto = probe, found
            probe = 0
    if _size(starts, reached) == 0:
        # More records share one timestamp than fit into a batch: read them partition by partition.
        return Cut(_in_order(starts, upto, rows), low, True)
    return Cut(tuple(reached), low, True)


def _size(starts: Offsets, ends: Offsets) -> int:
    return sum(end - start for start, end in zip(starts, ends, strict=True))


def _within(offsets: Offsets, starts: Offsets, ends: Offsets) -> list[int]:
    return [min(max(offset, start), end) for offset, start, end in zip(offsets, starts, ends, strict=True)]


def _in_order(starts: Offsets, ends: Offsets, rows: int) -> tuple[int, ...]:
    found = []
    for start, end in zip(starts, ends, strict=True):
        taken = min(rows, end - start)
        rows -= taken
        found.append(start + taken)
    return tuple(found)


def _shared(starts: Offsets, ends: Offsets, rows: int) -> tuple[int, ...]:
    """Divide the rows among the partitions, so that no partition starves."""
    found = list(starts)
    waiting = sorted(range(len(found)), key=lambda partition: ends[partition] - starts[partition])
    for number, partition in enumerate(waiting):
        taken = min(ends[partition] - starts[partition], rows // (len(waiting) - number))
        found[partition] += taken
        rows -= taken
    return tuple(found)
