"""Rates over a sliding minute, from monotonic totals."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

WINDOW_SECONDS = 60.0


class Counts(NamedTuple):
    """Arrived messages, processed records, sealed windows, late records."""

    arrived: int = 0
    processed: int = 0
    sealed: int = 0
    late: int = 0


class Rates(NamedTuple):
    """The same per second, and the number of arrivals per processed record."""

    arriving: float = 0.0
    processed: float = 0.0
    sealed: float = 0.0
    late: float = 0.0
    backpressure: float = 0.0


class Sliding:
    """Totals at several times, going back about a minute."""

    def __init__(self, at: float, totals: Counts) -> None:
        self._samples = deque([(at, totals)])

    def add(self, at: float, totals: Counts) -> None:
        """Add the totals at a later time."""
        self._samples.append((at, totals))
        while len(self._samples) > 2 and self._samples[1][0] <= at - WINDOW_SECONDS:
            self._samples.popleft()

    @property
    def latest(self) -> Counts:
        """The latest totals."""
        return self._samples[-1][1]

    @property
    def seconds(self) -> float:
        """The time between the first sample and the last."""
        return self._samples[-1][0] - self._samples[0][0]

    @property
    def counts(self) -> Counts:
        """The increments in that time."""
        first, last = self._samples[0][1], self._samples[-1][1]
        return Counts(*(after - before for before, after in zip(first, last, strict=True)))


def rates_of(counts: Counts, seconds: float) -> Rates:
    """Rates of counts over a duration; zero for no duration."""
    if seconds <= 0:
        return Rates()
    arriving, processed, sealed, late = (round(count / seconds, 2) for count in counts)
    backpressure = round(counts.arrived / max(counts.processed, 1), 3)
    return Rates(arriving, processed, sealed, late, backpressure)
