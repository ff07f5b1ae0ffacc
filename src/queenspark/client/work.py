"""How much a consumer should still do: shared by its workers, whatever they are."""

from __future__ import annotations

import time
from threading import Lock


class Budget:
    """Ends when enough was taken, or when nothing came for long enough."""

    def __init__(self, limit: int | None, idle: float | None) -> None:
        self._left = limit
        self._idle = idle
        self._lock = Lock()
        self._in_hand = 0
        self._last = time.monotonic()

    def claim(self, most: int) -> int:
        """How many of `most` may be taken now; 0 when it is enough."""
        with self._lock:
            if self._idle is not None and not self._in_hand and time.monotonic() - self._last >= self._idle:
                return 0
            claimed = most if self._left is None else min(most, self._left)
            if self._left is not None:
                self._left -= claimed
            return claimed

    def settle(self, claimed: int, taken: int) -> None:
        """So many of the claimed ones came."""
        with self._lock:
            if self._left is not None:
                self._left += claimed - taken
            if taken:
                self._in_hand += 1

    def handled(self) -> None:
        """A delivery was answered."""
        with self._lock:
            self._in_hand -= 1
            self._last = time.monotonic()

    def wait(self, longest: float) -> float:
        """How long to wait for the next one."""
        if self._idle is None:
            return longest
        with self._lock:
            return min(longest, max(0.05, self._last + self._idle - time.monotonic()))
