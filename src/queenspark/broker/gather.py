"""Group commit: concurrent requests go to the database as one statement."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from ..store.errors import DatabaseBusy, DatabaseUnavailable

_MOST_BYTES = 16 * 1024 * 1024

I = TypeVar("I")  # noqa: E741 - an item of a request
A = TypeVar("A")  # its result


class Gatherer(Generic[I, A]):
    """A few lanes; each runs all waiting requests as one statement, up to a number of items.

    The items of a request stay together and get their results after the commit. A failed statement is retried
    request by request, so that one bad request does not fail the others.
    """

    def __init__(self, run: Callable[[Sequence[I]], Awaitable[list[A]]], lanes: int, most: int) -> None:
        self._run = run
        self._lanes = lanes
        self._most = most
        self._running = 0
        self._waiting: deque[tuple[Sequence[I], asyncio.Future[list[A]], int]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, items: Sequence[I], size: int = 0) -> list[A]:
        """Run the items of one request of this many bytes, together with those of others."""
        future: asyncio.Future[list[A]] = asyncio.get_running_loop().create_future()
        self._waiting.append((items, future, size))
        if self._running < self._lanes:
            self._running += 1
            task = asyncio.create_task(self._lane())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await future

    async def _lane(self) -> None:
        try:
            while self._waiting:
                await self._together(self._take())
        finally:
            self._running -= 1

    def _take(self) -> list[tuple[Sequence[I], asyncio.Future[list[A]]]]:
        items, future, size = self._waiting.popleft()
        taken = [(items, future)]
        count = len(items)
        while self._waiting:
            items, future, more = self._waiting[0]
            if count + len(items) > self._most or size + more > _MOST_BYTES:
                break
            self._waiting.popleft()
            taken.append((items, future))
            count, size = count + len(items), size + more
        return taken

    async def _together(self, requests: list[tuple[Sequence[I], asyncio.Future[list[A]]]]) -> None:
        if len(requests) == 1:
            await self._alone(*requests[0])
            return
        try:
            results = await self._run([item for items, _ in requests for item in items])
        except (DatabaseUnavailable, DatabaseBusy) as error:
            for _, future in requests:
                if not future.done():
                    future.set_exception(error)
        except Exception:  # noqa: BLE001 - raised to the request
            for items, future in requests:
                await self._alone(items, future)
        else:
            start = 0
            for items, future in requests:
                if not future.done():
                    future.set_result(results[start : start + len(items)])
                start += len(items)

    async def _alone(self, items: Sequence[I], future: asyncio.Future[list[A]]) -> None:
        try:
            results = await self._run(items)
        except Exception as error:  # noqa: BLE001 - raised to the request
            if not future.done():
                future.set_exception(error)
        else:
            if not future.done():
                future.set_result(results)
