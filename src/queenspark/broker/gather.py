"""Group commit: pushes that arrive at the same time go to the database as one insert."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from ..store.errors import DatabaseBusy, DatabaseUnavailable
from ..store.push import Item, Pushed

_MOST_ITEMS = 4000  # gathered into one insert; a larger request goes alone
_MOST_BYTES = 16 * 1024 * 1024

Push = Callable[[Sequence[Item]], Awaitable[list[Pushed]]]
_Waiting = tuple[Sequence[Item], "asyncio.Future[list[Pushed]]", int]


class Gatherer:
    """A few lanes; each takes all pushes that wait and sends them as one statement.

    The items of a request stay together and are answered after their commit. When a gathered insert
    fails, it is tried again request by request, so that one bad request harms nobody else.
    """

    def __init__(self, push: Push, lanes: int) -> None:
        self._push = push
        self._lanes = lanes
        self._running = 0
        self._waiting: deque[_Waiting] = deque()
        self._tasks: set[asyncio.Task[None]] = set()

    async def push(self, items: Sequence[Item], size: int) -> list[Pushed]:
        """Push the items of one request of that many bytes, together with those of others."""
        future: asyncio.Future[list[Pushed]] = asyncio.get_running_loop().create_future()
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
                await self._push_together(self._take())
        finally:
            self._running -= 1

    def _take(self) -> list[_Waiting]:
        taken = [self._waiting.popleft()]
        count, size = len(taken[0][0]), taken[0][2]
        while self._waiting:
            items, _, more = self._waiting[0]
            if count + len(items) > _MOST_ITEMS or size + more > _MOST_BYTES:
                break
            taken.append(self._waiting.popleft())
            count, size = count + len(items), size + more
        return taken

    async def _push_together(self, requests: list[_Waiting]) -> None:
        if len(requests) == 1:
            await self._push_alone(*requests[0][:2])
            return
        try:
            results = await self._push([item for items, _, _ in requests for item in items])
        except (DatabaseUnavailable, DatabaseBusy) as error:
            for _, future, _ in requests:
                if not future.done():
                    future.set_exception(error)
        except Exception:  # noqa: BLE001 - whatever it is, it is the request's
            for items, future, _ in requests:
                await self._push_alone(items, future)
        else:
            start = 0
            for items, future, _ in requests:
                if not future.done():
                    future.set_result(results[start : start + len(items)])
                start += len(items)

    async def _push_alone(self, items: Sequence[Item], future: asyncio.Future[list[Pushed]]) -> None:
        try:
            result = await self._push(items)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the request's
            if not future.done():
                future.set_exception(error)
        else:
            if not future.done():
                future.set_result(result)
