"""Rate limits: requests and messages per second of one caller, per broker."""

from __future__ import annotations

import math
import time

from ..errors import ApiError


class Bucket:
    """A token bucket that holds one second's worth. Taking more than is left puts it into debt."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._most = max(1.0, rate)
        self._left = self._most
        self._at = time.monotonic()

    def take(self, count: int) -> float:
        """Take tokens if any are left; otherwise return the seconds until there are."""
        now = time.monotonic()
        self._left = min(self._most, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left < 1:
            return (1 - self._left) / self._rate
        self._left -= count
        return 0.0

    def spend(self, count: int) -> None:
        """Take tokens in any case."""
        self._left -= count


class KeyMeter:
    """The rate limits of one API key."""

    def __init__(self, requests_per_second: float | None, messages_per_second: float | None) -> None:
        self._limits = (requests_per_second, messages_per_second)
        self._requests = None if requests_per_second is None else Bucket(requests_per_second)
        self._messages = None if messages_per_second is None else Bucket(messages_per_second)

    def request(self) -> None:
        """Count one request, or raise 429."""
        if self._requests is not None and (wait := self._requests.take(1)):
            raise _too_many("requests", self._limits[0], wait)

    def messages(self, count: int) -> None:
        """Count messages before they are pushed, or raise 429; zero only checks."""
        if self._messages is not None and (wait := self._messages.take(count)):
            raise _too_many("messages", self._limits[1], wait)

    def delivered(self, count: int) -> None:
        """Count messages after their delivery: the next push or pop waits for them."""
        if self._messages is not None:
            self._messages.spend(count)


def _too_many(what: str, limit: float | None, wait: float) -> ApiError:
    seconds = max(1, math.ceil(wait))
    return ApiError(
        429,
        f"the limit of this key is {limit:g} {what} per second: try again in {seconds} s",
        "rate_limited",
        retry_after=seconds,
    )
