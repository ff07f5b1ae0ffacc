"""The limit and idle timeout of a consumer, shared by its workers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from threading import Lock

from .errors import InvalidValue


class Budget:
    """Runs out when the limit is reached or nothing arrived for the idle time."""

    def __init__(self, limit: int | None, idle: float | None) -> None:
        self._left = limit
        self._idle = idle
        self._lock = Lock()
        self._in_hand = 0
        self._nothing_there = False
        self._last = time.monotonic()

    def claim(self, most: int) -> int | None:
        """Return how many of `most` may be fetched now: 0 while the rest is in flight, None once idle."""
        with self._lock:
            quiet = self._nothing_there and not self._in_hand
            if self._idle is not None and quiet and time.monotonic() - self._last >= self._idle:
                return None
            if self._left is None:
                return most
            claimed = min(most, self._left)
            self._left -= claimed
            return claimed

    def settle(self, claimed: int, taken: Sequence[int] | None) -> None:
        """Settle a claim with the sizes of the fetched deliveries, or None if no broker responded."""
        with self._lock:
            if self._left is not None:
                self._left += max(0, claimed - sum(taken or ()))
            self._nothing_there = taken is not None and not taken
            self._in_hand += len(taken or ())

    def returned(self, size: int) -> None:
        """Return an unstarted delivery of this size to the budget."""
        with self._lock:
            self._in_hand -= 1
            if self._left is not None:
                self._left += size

    def handled(self) -> None:
        """Count a delivery as acked or nacked."""
        with self._lock:
            self._in_hand -= 1
            self._last = time.monotonic()

    def wait(self, longest: float) -> float:
        """Return how long to wait for the next delivery."""
        with self._lock:
            if self._idle is None:
                return longest
            left = self._idle if self._in_hand else self._last + self._idle - time.monotonic()
            return min(longest, max(0.05, left))


def at_least_one(name: str, value: int) -> int:
    """Validate a positive integer; `name` is the argument named in the error."""
    if type(value) is not int or value < 1:
        raise InvalidValue(f"{name} is {value!r}: use a whole number, at least 1")
    return value
