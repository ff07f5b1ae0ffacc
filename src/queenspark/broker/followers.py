"""Those who follow a queue as it grows, without a group and without leases."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Follower:
    """Waits for news of one queue."""

    def __init__(self) -> None:
        self._news = asyncio.Event()

    def wake(self) -> None:
        """There is news."""
        self._news.set()

    async def wait(self, seconds: float) -> bool:
        """Wait for news, at most so long; whether there was any."""
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return False
        self._news.clear()
        return True


class Followers:
    """All followers of a broker."""

    def __init__(self) -> None:
        self._by_queue: dict[str, set[Follower]] = {}
        #: Whether the broker stops, so that nobody should go on following.
        self.closed = False

    @contextmanager
    def following(self, queue: str) -> Iterator[Follower]:
        """Follow a queue."""
        follower = Follower()
        followers = self._by_queue.setdefault(queue, set())
        followers.add(follower)
        try:
            yield follower
        finally:
            followers.discard(follower)
            if not followers and self._by_queue.get(queue) is followers:
                del self._by_queue[queue]

    def wake(self, queue: str | None) -> None:
        """There is news of a queue (or, with None, perhaps of any)."""
        chosen = list(self._by_queue) if queue is None else [queue]
        for name in chosen:
            for follower in self._by_queue.get(name, ()):
                follower.wake()

    def close(self) -> None:
        """Let all followers come to an end."""
        self.closed = True
        self.wake(None)
