"""Broker selection and retry backoff."""

from __future__ import annotations

import random
from collections.abc import Sequence
from threading import Lock

import httpx2

from .errors import InvalidValue

_FIRST_DELAY = 0.1
_LONGEST_DELAY = 5.0


class Brokers:
    """Brokers of one database, interchangeable; the last one to respond is tried first."""

    def __init__(self, urls: str | Sequence[str]) -> None:
        self._urls = [_checked(url) for url in ([urls] if isinstance(urls, str) else urls)]
        if not self._urls:
            raise InvalidValue("url is empty: pass the URL of a broker, such as http://127.0.0.1:6632")
        self._current = 0
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._urls)

    def __str__(self) -> str:
        return ", ".join(map(shown, self._urls))

    @property
    def current(self) -> str:
        """The broker to try next."""
        return self._urls[self._current]

    def leave(self, url: str) -> None:
        """Fail over from a broker that did not respond, unless another caller already has."""
        with self._lock:
            if self._urls[self._current] == url:
                self._current = (self._current + 1) % len(self._urls)


def _checked(url: str) -> str:
    try:
        is_valid = url.startswith(("http://", "https://")) and bool(httpx2.URL(url).host)
    except httpx2.InvalidURL:
        is_valid = False
    if not is_valid:
        raise InvalidValue(f"url is {shown(url)!r}: use a URL such as http://127.0.0.1:6632")
    return url.rstrip("/")


def shown(url: str) -> str:
    """Return a URL as errors show it: without user name and password, even if it is malformed."""
    scheme, separator, rest = url.rpartition("://")
    _, at, host = rest.rpartition("@")
    return f"{scheme}{separator}…@{host}" if at else url


def delay(failures: int) -> float:
    """Return the backoff in seconds after this many consecutive failures: exponential, with jitter."""
    longest = min(_LONGEST_DELAY, _FIRST_DELAY * 2.0 ** min(failures - 1, 10))
    return random.uniform(longest / 2, longest)
