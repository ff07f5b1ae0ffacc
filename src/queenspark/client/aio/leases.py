"""Leases held by a consumer, renewed while handlers run."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from ..duration import Duration, lease_seconds
from ..errors import LeaseLost, NotFound, QueenError
from .tasks import Condition, Task
from .transport import AsyncTransport

_SHARE = 3  # renewed after a third of the lease time
_log = logging.getLogger("queenspark.client")


class AsyncLease:
    """A lease on a message or window: the exclusive right to ack it, until it expires."""

    def __init__(self, transport: AsyncTransport, id_: str, timeout: float) -> None:
        self.transport = transport
        self.id = id_
        #: Lease time in seconds, without renewal.
        self.timeout = timeout
        self.ends = time.monotonic() + timeout
        #: The AsyncAcks with acks under this lease, if any.
        self.gathering: Any = None

    @property
    def is_over(self) -> bool:
        """Whether the lease has expired."""
        return time.monotonic() >= self.ends

    async def renew(self, duration: Duration | None = None) -> None:
        """Extend the lease to this long from now, by default its original time; never shortens it."""
        await self._extend(self.timeout if duration is None else lease_seconds("duration", duration))

    async def keep(self) -> None:
        """Renew once, without retries: the keeper tries again soon."""
        await self._extend(self.timeout, within=self.timeout / _SHARE, retries=0)

    async def _extend(self, wanted: float, **how: Any) -> None:
        now = time.monotonic()
        body = {"seconds": max(1, math.ceil(wanted))}
        try:
            await self.transport.call("POST", "lease", self.id, "extend", body=body, **how)
        except NotFound:
            raise LeaseLost(
                f"lease {self.id} has ended: it expired, was revoked, or everything under it was acked"
            ) from None
        self.ends = max(self.ends, now + wanted)


class AsyncKeeper:
    """Renews every held lease after a third of its time; `tell` is called with each result.

    Each lease is renewed concurrently in a request of its own, so that a slow one does not delay the others.
    A lost lease is not reported: the lease of a delivery that was just acked looks the same.
    """

    def __init__(self, tell: Callable[[AsyncLease, Exception | None], object]) -> None:
        self._tell = tell
        self._news = Condition()
        #: Number of deliveries held under each lease, and its next renewal time.
        self._held: dict[AsyncLease, int] = {}
        self._due: dict[AsyncLease, float] = {}
        self._renewals: dict[AsyncLease, Task] = {}
        self._next = 0.0
        self._over = False

    async def hold(self, lease: AsyncLease) -> None:
        """Start renewing this lease, for one more delivery."""
        async with self._news:
            self._held[lease] = self._held.get(lease, 0) + 1
            if lease not in self._due:
                self._plan(lease, lease.timeout / _SHARE)

    async def drop(self, lease: AsyncLease) -> None:
        """Release one delivery's hold on this lease."""
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
        """Renew leases when due, until `end` is called."""
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
        error: Exception | None = None
        try:
            await lease.keep()
        except LeaseLost:
            return
        except QueenError as failure:
            error = failure
        except Exception as failure:  # noqa: BLE001 - it must not end the renewals
            _log.exception("unexpected error while renewing lease %s; retrying", lease.id)
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
