"""Connections cached by a Spark worker across tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar


class Closable(Protocol):
    """An object with a lazily opened connection."""

    def close(self) -> None:
        """Disconnect."""


T = TypeVar("T", bound=Closable)


class Kept(Generic[T]):
    """Caches one object per database; beyond `most`, the least recently used one is closed."""

    def __init__(self, make: Callable[[str], T], most: int = 4) -> None:
        self._make = make
        self._most = most
        self._kept: dict[str, T] = {}

    def of(self, url: str) -> T:
        """Return the object of a database."""
        found = self._kept.pop(url, None) or self._make(url)
        self._kept[url] = found
        while len(self._kept) > self._most:
            self._kept.pop(next(iter(self._kept))).close()
        return found
