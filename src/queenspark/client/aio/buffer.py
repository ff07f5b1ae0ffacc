"""Pushes that are gathered: many small ones become few requests."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable

import msgspec

from ..brokers import delay
from ..errors import PASSING, BufferFull, NotSent, QueenError, Refused
from ..outgoing import Item
from .tasks import Condition, Task

_MOST_ITEMS = 1000  # of one request
_MOST_BYTES = 4 * 1024 * 1024
Send = Callable[[list[Item]], Awaitable[object]]


class AsyncBuffer:
    """Items that wait to be sent: at most `size` of them, none much longer than `linger` seconds.

    They are sent in the order in which they came, one request at a time. What a broker cannot take now stays
    here and is tried again; what it refuses for good is kept apart, and `flush` raises it.
    """

    def __init__(self, send: Send, size: int, linger: float, patience: float) -> None:
        self._send = send
        self._size = size
        self._linger = linger
        self._patience = patience
        self._waiting: deque[Item] = deque()
        self._refused: list[tuple[Item, Refused]] = []
        self._news = Condition()
        self._task: Task | None = None
        self._wanted = 0  # flushes under way: nothing lingers
        self._failure: QueenError | None = None
        self._closed = False

    async def add(self, items: list[Item]) -> None:
        """Take items, all or none; wait when there is no room."""
        deadline = time.monotonic() + self._patience
        async with self._news:
            while self._waiting and len(self._waiting) + len(items) > self._size:
                left = deadline - time.monotonic()
                if left <= 0:
                    why = f": {self._failure}" if self._failure else ""
                    raise BufferFull(
                        f"{len(self._waiting)} messages wait in the buffer and could not be sent{why}"
                    )
                await self._news.wait(left)
            self._waiting.extend(items)
            if self._task is None:
                self._task = Task(self._run)
            self._news.notify()

    async def flush(self) -> None:
        """Wait until everything was sent; raise when a broker refused some, or none can be reached."""
        async with self._news:
            self._failure = None
            self._wanted += 1
            self._news.notify()
            try:
                while self._waiting and self._failure is None:
                    await self._news.wait()
            finally:
                self._wanted -= 1
            refused, self._refused = self._refused, []
            failure, left = self._failure, len(self._waiting)
        if refused:
            payloads = [msgspec.json.decode(item.payload) for item, _ in refused]
            raise NotSent(f"{len(refused)} messages were refused, first: {refused[0][1]}", payloads)
        if left and failure is not None:
            raise NotSent(f"{left} messages wait in the buffer and could not be sent: {failure}", [])

    async def aclose(self) -> None:
        """Flush, and end."""
        try:
            await self.flush()
        finally:
            async with self._news:
                self._closed = True
                self._news.notify()
            if self._task is not None:
                await self._task.join()

    async def _run(self) -> None:
        failures = 0
        while True:
            async with self._news:
                while not self._waiting and not self._closed:
                    await self._news.wait()
                if self._closed:
                    return
                if failures:
                    await self._pause(delay(failures))
                elif not self._wanted and len(self._waiting) < _MOST_ITEMS:
                    await self._pause(self._linger)
                items = self._first()
            try:
                await self._send_all(items)
                failures, failure = 0, None
            except QueenError as error:
                failures, failure = failures + 1, error
            async with self._news:
                self._failure = failure
                if failure is None:
                    for _ in items:
                        self._waiting.popleft()
                self._news.notify()

    async def _pause(self, seconds: float) -> None:
        """Wait, but not longer than somebody who flushes or closes wants to."""
        until = time.monotonic() + seconds
        while not (self._closed or self._wanted or len(self._waiting) >= _MOST_ITEMS):
            left = until - time.monotonic()
            if left <= 0:
                return
            await self._news.wait(left)

    def _first(self) -> list[Item]:
        items: list[Item] = []
        size = 0
        for item in self._waiting:
            size += len(item.payload)
            if items and (size > _MOST_BYTES or len(items) == _MOST_ITEMS):
                break
            items.append(item)
        return items

    async def _send_all(self, items: list[Item]) -> None:
        """Send items; when the broker refuses them, one by one, so that a bad one harms no other."""
        try:
            await self._send(items)
        except PASSING:
            raise
        except Refused as error:
            if len(items) == 1:
                self._refused.append((items[0], error))
                return
            for item in items:
                await self._send_all([item])
