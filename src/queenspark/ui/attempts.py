"""Failed log-ins: an address that keeps failing has to wait, longer each time."""

from __future__ import annotations

import math
import time
from collections import OrderedDict

FREE = 5
"""Failures of an address that cost nothing.

Fewer than a broker allows, which sees all browsers as one address."""

_LONGEST_SECONDS = 300.0
_FORGIVEN_SECONDS = 900.0  # without a failure
_MOST_ADDRESSES = 10_000


class Attempts:
    """Counts failed log-ins by address."""

    def __init__(self) -> None:
        self._failures: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def wait_seconds(self, address: str) -> int:
        """How long an address has to wait before its next attempt; 0 when it need not."""
        count, at = self._failures.get(address, (0, 0.0))
        if count < FREE:
            return 0
        wait = at + min(_LONGEST_SECONDS, 2.0 ** (count - FREE)) - time.monotonic()
        return max(0, math.ceil(wait))

    def note(self, address: str) -> None:
        """A log-in failed."""
        count, at = self._failures.pop(address, (0, 0.0))
        now = time.monotonic()
        self._failures[address] = (1 if now - at > _FORGIVEN_SECONDS else count + 1, now)
        if len(self._failures) > _MOST_ADDRESSES:
            self._failures.popitem(last=False)

    def forget(self, address: str) -> None:
        """A log-in succeeded."""
        self._failures.pop(address, None)
