"""Histogram of durations."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

BOUNDS = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds in seconds, plus an implicit last bucket."""


class Histogram:
    """Counts since this process started leading."""

    def __init__(self, bounds: Sequence[float] = BOUNDS) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0

    def observe(self, seconds: float) -> None:
        """Count one duration."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._sum += seconds

    def to_json(self) -> dict[str, Any]:
        """Encode for the brokers: `counts` has one more entry than `bounds`, for longer ones."""
        return {"bounds": list(self._bounds), "counts": list(self._counts), "sum": round(self._sum, 3)}
