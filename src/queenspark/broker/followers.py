"""Followers of a queue's log, without a group and without leases."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Follower:
    """Waits for notifications of one queue."""

    def __init__(self) -> None:
        self._news = asyncio.Event()

    def wake(self) -> None:
        """Notify of new messages."""
        self._news.set()

    async def wait(self, seconds: float) -> bool:
        """Wait for a notification, up to a timeout; return whether there was one."""
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
        #: Whether the broker is stopping: followers must end.
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
        """Notify the followers of a queue, or of all queues with None."""
        chosen = list(self._by_queue) if queue is None else [queue]
        for name in chosen:
            for follower in self._by_queue.get(name, ()):
                follower.wake()

    def close(self) -> None:
        """End all followers."""
        self.closed = True
        self.wake(None)
