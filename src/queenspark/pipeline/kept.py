"""Connections that live on with a worker of Spark, from task to task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar


class Closable(Protocol):
    """Something with a connection that it opens when it needs one."""

    def close(self) -> None:
        """Disconnect."""


T = TypeVar("T", bound=Closable)


class Kept(Generic[T]):
    """Keeps one for each database; of more than `most`, the one that was not used for longest is closed."""

    def __init__(self, make: Callable[[str], T], most: int = 4) -> None:
        self._make = make
        self._most = most
        self._kept: dict[str, T] = {}

    def of(self, url: str) -> T:
        """The one of a database."""
        found = self._kept.pop(url, None) or self._make(url)
        self._kept[url] = found
        while len(self._kept) > self._most:
            self._kept.pop(next(iter(self._kept))).close()
        return found
