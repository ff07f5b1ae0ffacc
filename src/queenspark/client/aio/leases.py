"""Leases in hand: answering under them, and renewing them while handlers work."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from ..duration import Duration, lease_seconds
from ..errors import LeaseLost, NotFound, QueenError
from .tasks import Condition, Task
from .transport import AsyncTransport

_SHARE = 3  # a lease is renewed after a third of its time


class AsyncLease:
    """The right to answer what was taken, until it ends."""

    def __init__(self, transport: AsyncTransport, id_: str, timeout: float) -> None:
        self.transport = transport
        self.id = id_
        #: How long it lasts without renewal, in seconds.
        self.timeout = timeout
        self.ends = time.monotonic() + timeout
        #: What gathers answers under this lease (AsyncAnswers), once it has some.
        self.gathering: Any = None

    @property
    def is_over(self) -> bool:
        """Whether its time has passed."""
        return time.monotonic() >= self.ends

    async def renew(self, duration: Duration | None = None) -> None:
        """Let it last this long from now, or as long as at first; it is never shortened."""
        await self._extend(self.timeout if duration is None else lease_seconds("duration", duration))

    async def keep(self) -> None:
        """Renew it once, without patience: whoever keeps it alive comes again soon."""
        await self._extend(self.timeout, within=self.timeout / _SHARE, retries=0)

    async def _extend(self, wanted: float, **how: Any) -> None:
        now = time.monotonic()
        body = {"seconds": max(1, math.ceil(wanted))}
        try:
            await self.transport.call("POST", "lease", self.id, "extend", body=body, **how)
        except NotFound:
            raise LeaseLost(f"lease {self.id} has ended: its messages go to another consumer") from None
        self.ends = max(self.ends, now + wanted)


class AsyncKeeper:
    """Renews every lease that is held at a third of its time; `tell` hears of it, and of errors.

    Each lease is renewed by a request of its own, beside the others, so that a slow one is not the end of
    the rest. One that is lost is not told: that of a delivery which was just acked looks the same.
    """

    def __init__(self, tell: Callable[[AsyncLease, QueenError | None], object]) -> None:
        self._tell = tell
        self._news = Condition()
        #: How many deliveries each lease is held for, and when it is renewed next.
        self._held: dict[AsyncLease, int] = {}
        self._due: dict[AsyncLease, float] = {}
        self._renewals: dict[AsyncLease, Task] = {}
        self._next = 0.0
        self._over = False

    async def hold(self, lease: AsyncLease) -> None:
        """Renew this lease from now on."""
        async with self._news:
            self._held[lease] = self._held.get(lease, 0) + 1
            if lease not in self._due:
                self._plan(lease, lease.timeout / _SHARE)

    async def drop(self, lease: AsyncLease) -> None:
        """One delivery less is held under this lease."""
        async with self._news:
            self._held[lease] -= 1
            if not self._held[lease]:
                del self._held[lease]
                self._due.pop(lease, None)
                if (renewal := self._renewals.pop(lease, None)) is not None:
                    renewal.cancel()

    async def end(self) -> None:
        """Let `run` return."""
        async with self._news:
            self._over = True
            for renewal in self._renewals.values():
                renewal.cancel()
            self._news.notify()

    async def run(self) -> None:
        """Renew what is due, until the end."""
        while True:
            async with self._news:
                now = time.monotonic()
                due = [lease for lease, at in self._due.items() if at <= now]
                for lease in due:
                    del self._due[lease]
                    self._renewals[lease] = Task(partial(self._renew, lease))
                self._next = min(self._due.values(), default=math.inf)
                if not due and not self._over:
                    await self._news.wait(None if self._next == math.inf else self._next - now)
                if self._over:
                    return

    async def _renew(self, lease: AsyncLease) -> None:
        error: QueenError | None = None
        try:
            await lease.keep()
        except LeaseLost:
            return
        except QueenError as failure:
            error = failure
        async with self._news:
            if lease not in self._held or self._over:
                return
            self._renewals.pop(lease, None)
            self._plan(lease, lease.timeout / _SHARE if error is None else min(1.0, lease.timeout / 10))
        self._tell(lease, error)

    def _plan(self, lease: AsyncLease, seconds: float) -> None:
        self._due[lease] = time.monotonic() + seconds
        if self._due[lease] < self._next:
            self._news.notify()
