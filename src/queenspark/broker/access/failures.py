"""Failed log-ins: an address that keeps failing has to wait, longer each time."""

from __future__ import annotations

import math
import time
from collections import OrderedDict

from ..errors import ApiError

FREE = 10
"""Failures of an address that cost nothing; people mistype."""

_LONGEST_SECONDS = 60.0
_FORGIVEN_SECONDS = 300.0  # without a failure
_MOST_ADDRESSES = 10_000


class Failures:
    """Counts failed log-ins by address."""

    def __init__(self) -> None:
        self._failures: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def check(self, address: str) -> None:
        """Refuse to look at a credential while its address has to wait."""
        count, at = self._failures.get(address, (0, 0.0))
        if count <= FREE:
            return
        wait = at + min(_LONGEST_SECONDS, 2.0 ** (count - FREE - 1)) - time.monotonic()
        if wait > 0:
            seconds = math.ceil(wait)
            raise ApiError(
                429,
                f"too many failed logins from {address}: try again in {seconds} s",
                "rate_limited",
                retry_after=seconds,
            )

    def note(self, address: str) -> None:
        """A log-in failed."""
        count, at = self._failures.pop(address, (0, 0.0))
        now = time.monotonic()
        self._failures[address] = (1 if now - at > _FORGIVEN_SECONDS else count + 1, now)
        if len(self._failures) > _MOST_ADDRESSES:
            self._failures.popitem(last=False)
