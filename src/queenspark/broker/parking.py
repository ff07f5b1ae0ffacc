"""Parked long polls, idle until their queue has news.

Polls for the same thing share a lot. When a lot is woken, one runner pops for its polls in turn, first come
first served, until the queue is drained; so one message costs one pop, however many polls are parked.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from ..store.delivery import Batch
from ..store.errors import ChangedMeanwhile, Refused, StoreError

# While messages wait for an older transaction to finish, check again with exponential backoff: slow, because
# most transactions are short, and a message then waits at most a quarter longer than necessary.
_ABOVE_HORIZON_SECONDS = 0.002
_ABOVE_HORIZON_LONGEST = 0.25
_ABOVE_HORIZON_GROWTH = 1.25
_MOST_NAMES = 100_000
_LONGEST_SECONDS = 30.0
_TROUBLE_SECONDS = 1.0


class Lot(NamedTuple):
    """The target of a poll: a queue (or any queue of a scope), for a group, optionally in one partition."""

    queue: str | None
    scope: tuple[str | None, str | None]
    group: str
    partition: str | None
    #: The visible names, for polls without a queue name: the polls of a lot must be interchangeable.
    reach: tuple[str, ...] | None = None


Pop = Callable[[], Awaitable[Batch | None]]
InScope = Callable[[str, tuple[str | None, str | None]], bool]
NextCheck = Callable[[], Awaitable[tuple[bool, float | None]]]


class _Poll:
    __slots__ = ("future", "leaving", "pop", "popping")

    def __init__(self, pop: Pop) -> None:
        self.pop = pop
        self.popping = False  # a batch from this pop belongs to this poll, even after its timeout
        self.leaving = False
        self.future: asyncio.Future[Batch | None] = asyncio.get_running_loop().create_future()


class _ParkedLot:
    """The polls of one lot, and its runner."""

    def __init__(self, next_check: NextCheck, release: Callable[[Batch], Awaitable[None]]) -> None:
        self.polls: deque[_Poll] = deque()
        self._next_check = next_check
        self._release = release
        self._news = False
        self.is_drained = False  # the last pop found nothing, and no notification came since
        self._pause = _ABOVE_HORIZON_SECONDS
        self._runner: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def wake(self) -> None:
        self._news = True
        self.is_drained = False
        self._pause = _ABOVE_HORIZON_SECONDS
        if self._runner is None or self._runner.done():
            self._runner = asyncio.create_task(self._run())

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for poll in self.polls:
            poll.leaving = True
            if not poll.popping and not poll.future.done():
                poll.future.set_result(None)

    async def _run(self) -> None:
        while self.polls:
            self._news = False
            poll = self.polls[0]
            poll.popping = True
            try:
                batch = await poll.pop()
            except (Refused, ChangedMeanwhile) as error:
                self._drop(poll)
                if not poll.future.done():
                    poll.future.set_exception(error)
                continue
            except StoreError:
                self._leave(poll)
                self._again_in(_TROUBLE_SECONDS)
                return
            except Exception as error:  # noqa: BLE001 - raised to the request
                self._drop(poll)
                if not poll.future.done():
                    poll.future.set_exception(error)
                continue
            if batch is not None:
                self._drop(poll)
                if poll.future.done():
                    await self._release(batch)
                else:
                    poll.future.set_result(batch)
                continue
            self._leave(poll)
            if not self._news and not await self._check_later():
                return

    def _leave(self, poll: _Poll) -> None:
        """End a poll that timed out during an empty pop."""
        poll.popping = False
        if poll.leaving and not poll.future.done():
            poll.future.set_result(None)

    async def _check_later(self) -> bool:
        """Set a timer for the next partition that becomes available; return True to check again at once."""
        try:
            above_horizon, seconds = await self._next_check()
        except StoreError:
            self._again_in(_TROUBLE_SECONDS)
            return False
        if self._news:
            return True
        if above_horizon:
            await asyncio.sleep(self._pause)
            self._pause = min(_ABOVE_HORIZON_GROWTH * self._pause, _ABOVE_HORIZON_LONGEST)
            return True
        if seconds is not None:
            self._again_in(max(seconds, 0.001))
        self.is_drained = True
        return False

    def _again_in(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(min(seconds, _LONGEST_SECONDS), self.wake)

    def _drop(self, poll: _Poll) -> None:
        if poll in self.polls:
            self.polls.remove(poll)


class Parking:
    """All parked polls of a broker."""

    def __init__(self, release: Callable[[Batch], Awaitable[None]], in_scope: InScope) -> None:
        self._release = release
        self._in_scope = in_scope
        self._lots: dict[Lot, _ParkedLot] = {}
        self._by_queue: dict[str | None, set[Lot]] = {}  # None: polls of a whole namespace or task
        self._wakes: dict[str, int] = {}
        self._all_wakes = 0
        self.closed = False

    def __len__(self) -> int:
        return sum(len(parked.polls) for parked in self._lots.values())

    def queues(self) -> set[str]:
        """Queues with parked polls."""
        return {queue for queue in self._by_queue if queue is not None}

    def version(self, lot: Lot) -> int:
        """Incremented by each notification for a lot. Read before a pop, it detects one during the pop."""
        return self._all_wakes + (self._wakes.get(lot.queue, 0) if lot.queue is not None else 0)

    def is_drained(self, lot: Lot) -> bool:
        """Whether other polls are parked on this lot and a pop is known to find nothing."""
        parked = self._lots.get(lot)
        return parked is not None and bool(parked.polls) and parked.is_drained

    def wake(self, queue: str | None) -> None:
        """Wake the polls of a queue, or of all queues with None."""
        if queue is None:
            self._all_wakes += 1
            chosen = list(self._lots)
        else:
            if len(self._wakes) > _MOST_NAMES:
                self._all_wakes += max(self._wakes.values())
                self._wakes.clear()
            self._wakes[queue] = self._wakes.get(queue, 0) + 1
            chosen = [*self._by_queue.get(queue, ())]
            chosen += [lot for lot in self._by_queue.get(None, ()) if self._in_scope(queue, lot.scope)]
        for lot in chosen:
            self._lots[lot].wake()

    def wake_scopes(self) -> None:
        """Wake the polls of namespaces and tasks."""
        for lot in list(self._by_queue.get(None, ())):
            self._lots[lot].wake()

    async def wait(
        self, lot: Lot, version: int, pop: Pop, next_check: NextCheck, seconds: float, gone: asyncio.Task[Any]
    ) -> Batch | None:
        """Park until there is a batch, the timeout passes, or the client disconnects."""
        if self.closed:
            return None
        parked = self._lots.get(lot)
        if parked is None:
            parked = self._lots[lot] = _ParkedLot(next_check, self._release)
            self._by_queue.setdefault(lot.queue, set()).add(lot)
        poll = _Poll(pop)
        parked.polls.append(poll)
        if len(parked.polls) == 1 or version != self.version(lot):
            parked.wake()
        try:
            await asyncio.wait({poll.future, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if poll.popping and not poll.future.done():
                poll.leaving = True
                await asyncio.wait({poll.future})
        finally:
            parked._drop(poll)
            if not parked.polls:
                parked.close()
                self._forget(lot, parked)
            if not poll.future.done():
                poll.future.cancel()
        if poll.future.cancelled():
            return None
        return poll.future.result()

    def _forget(self, lot: Lot, parked: _ParkedLot) -> None:
        if self._lots.get(lot) is parked:
            del self._lots[lot]
            lots = self._by_queue[lot.queue]
            lots.discard(lot)
            if not lots:
                del self._by_queue[lot.queue]

    def close(self) -> None:
        """End all parked polls with an empty response, and accept no more."""
        self.closed = True
        for parked in list(self._lots.values()):
            parked.close()
