"""Buffered pushes: many small pushes become few requests."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from ..brokers import delay
from ..errors import PASSING, BufferFull, NotSent, QueenError, QueueFull, Refused
from ..outgoing import Item
from .tasks import Condition, Task, at_exit, not_at_exit

_MOST_ITEMS = 1000  # per request
_MOST_BYTES = 4 * 1024 * 1024
Send = Callable[[list[Item]], Awaitable[object]]


class AsyncBuffer:
    """Items waiting to be sent: at most `size`, none much longer than `linger` seconds.

    They are sent in order, one request at a time. Items stay here and are retried on transient errors; items
    that the broker rejects for good are set aside, and `flush` raises an error for them.
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
        self._added = 0
        self._settled = 0  # added items that are stored or rejected for good
        self._flushes = 0  # in progress: no lingering
        self._failure: Exception | None = None
        self._closing = False  # accepts no more items
        self._closed = False  # sends nothing more

    async def add(self, items: list[Item]) -> None:
        """Add items, all or none; wait while the buffer is full."""
        deadline = time.monotonic() + self._patience
        async with self._news:
            while self._waiting and len(self._waiting) + len(items) > self._size and not self._closing:
                left = deadline - time.monotonic()
                if left <= 0:
                    why = f": {self._failure}" if self._failure else ""
                    raise BufferFull(f"{len(self._waiting)} messages in the buffer could not be sent{why}")
                await self._news.wait(left)
            if self._closing:
                raise QueenError("the client is closed")
            self._waiting.extend(items)
            self._added += len(items)
            if self._task is None:
                self._task = Task(self._run)
                at_exit(self.aclose)
            self._news.notify()

    async def flush(self) -> None:
        """Wait until all buffered items are sent; raise if some were rejected or no broker is reachable."""
        async with self._news:
            self._forget_failure()
            wanted = self._added
            self._flushes += 1
            self._news.notify()
            try:
                while self._settled < wanted and self._failure is None and not self._closed:
                    await self._news.wait()
            finally:
                self._flushes -= 1
            refused, self._refused = self._refused, []
            failure, left = self._failure, len(self._waiting)
            done = self._settled >= wanted
        if refused:
            payloads = [_payload(item) for item, _ in refused]
            raise NotSent(f"{len(refused)} messages were rejected; first: {refused[0][1]}", payloads)
        if not done:
            why = failure or "the client is closed"
            raise NotSent(f"{left} messages in the buffer could not be sent: {why}", [])

    def _forget_failure(self) -> None:
        self._failure = None

    async def aclose(self) -> None:
        """Flush and close. Unsent payloads are in the NotSent that this raises."""
        async with self._news:
            if self._closing:
                return
            self._closing = True
            self._news.notify()
        not_at_exit(self.aclose)
        failure: NotSent | None = None
        try:
            await self.flush()
        except NotSent as error:
            failure = error
        finally:
            async with self._news:
                self._closed = True
                self._news.notify()
            if self._task is not None:
                await self._task.join()
        if failure is not None:
            raise NotSent(str(failure), [*failure.payloads, *map(_payload, self._waiting)])

    async def _run(self) -> None:
        failures, most = 0, _MOST_ITEMS
        while True:
            async with self._news:
                while not self._waiting and not self._closed:
                    await self._news.wait()
                if failures:
                    await self._pause(delay(failures))
                elif len(self._waiting) < _MOST_ITEMS:
                    await self._pause(self._linger, _MOST_ITEMS)
                if self._closed:
                    return
                items = self._first(most)
            failure: Exception | None = None
            refused: Refused | None = None
            try:
                await self._send(items)
            except PASSING as error:
                failure = error
            except Refused as error:
                refused = error
            except Exception as error:  # noqa: BLE001 - no item may be lost, no flush may hang
                failure = error
            async with self._news:
                self._failure = failure
                if failure is not None:
                    failures += 1
                    if isinstance(failure, QueueFull):  # a smaller batch may fit
                        most = max(1, len(items) // 2)
                elif refused is not None and len(items) > 1:  # bisect, to isolate the bad item
                    most = len(items) // 2
                else:
                    if refused is not None:
                        self._refused.append((items[0], refused))
                    for _ in items:
                        self._waiting.popleft()
                    self._settled += len(items)
                    failures, most = 0, min(2 * most, _MOST_ITEMS)
                self._news.notify()

    async def _pause(self, seconds: float, enough: int | None = None) -> None:
        """Wait until the timeout or until enough items are buffered; a flush or close ends the wait."""
        until = time.monotonic() + seconds
        while not (self._closed or self._flushes or (enough and len(self._waiting) >= enough)):
            left = until - time.monotonic()
            if left <= 0:
                return
            await self._news.wait(left)

    def _first(self, most: int) -> list[Item]:
        items: list[Item] = []
        size = 0
        for item in self._waiting:
            size += item.size
            if items and (size > _MOST_BYTES or len(items) == most):
                break
            items.append(item)
        return items


def _payload(item: Item) -> Any:
    return msgspec.json.decode(item.payload)
