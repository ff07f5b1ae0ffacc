"""Failed logins by address: an address that keeps failing has to wait, longer each time."""

from __future__ import annotations

import math
import time
from collections import OrderedDict

_MOST_ADDRESSES = 10_000


class FailedLogins:
    """Failed logins of each address.

    The first `free` failures cost nothing, because people mistype. Each one after them doubles the wait, from
    one second up to `longest_seconds`. After `forgiven_seconds` without a failure an address starts over.
    """

    def __init__(self, free: int, longest_seconds: float, forgiven_seconds: float) -> None:
        self._free = free
        self._longest_seconds = longest_seconds
        self._forgiven_seconds = forgiven_seconds
        self._failures: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def wait_seconds(self, address: str) -> int:
        """Return how long an address has to wait before its next attempt, 0 if it may try now."""
        count, at = self._failures.get(address, (0, 0.0))
        if count <= self._free:
            return 0
        doublings = min(count - self._free - 1, 30)
        wait = at + min(self._longest_seconds, 2.0**doublings) - time.monotonic()
        return max(0, math.ceil(wait))

    def add(self, address: str) -> None:
        """Count a failure."""
        count, at = self._failures.pop(address, (0, 0.0))
        now = time.monotonic()
        self._failures[address] = (1 if now - at > self._forgiven_seconds else count + 1, now)
        if len(self._failures) > _MOST_ADDRESSES:
            self._failures.popitem(last=False)

    def clear(self, address: str) -> None:
        """Forget the failures of an address that has logged in."""
        self._failures.pop(address, None)
