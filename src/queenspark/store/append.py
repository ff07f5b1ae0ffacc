"""Appending to the log: the write path of pushes by clients and by Spark's sink `queen`.

Windows and rows of jobs are copied by the window sink (`log_writer.py`), dead letters by SQL functions.

A push is checked against the size limit of its queue, staged while push maintenance is on, encrypted if its
queue requires it, inserted, and announced to waiting readers. Brokers, Spark's sink and transactions differ
only in how items are inserted (gathered with other requests, alone, or together with acks), in how they learn
that maintenance is on, and in which consumers they wake first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence, Set
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection

from .catalog import Catalog, refuse_rows
from .delivery import Ack, Acked
from .maintenance import Maintenance
from .push import Item, Pushed
from .queues import Queues
from .transaction import Transactions

Push = Callable[[Sequence[Item], int], Awaitable[list[Pushed]]]
"""Inserts the items of one request of this many bytes, atomically."""


class Appender:
    """Appends items to the log; returns when they are on disk, or staged."""

    def __init__(
        self,
        catalog: Catalog,
        queues: Queues,
        maintenance: Maintenance,
        transactions: Transactions,
        *,
        push: Push,
        is_staging: Callable[[], Awaitable[bool]],
        wake: Callable[[Set[str]], Awaitable[None]],
    ) -> None:
        self._catalog = catalog
        self._queues = queues
        self._maintenance = maintenance
        self._transactions = transactions
        self._push = push
        self._is_staging = is_staging
        self._wake = wake

    async def append(self, items: Sequence[Item], size: int = 0) -> list[Pushed]:
        """Append the items of one request atomically; raises QueueFull."""
        await self.check(items)
        pushed = await self._maintenance.stage(items) if await self._is_staging() else None
        if pushed is None:
            pushed = await self._push(items, size)
            await self._wake({item.queue for item in items})
        return pushed

    async def append_and_ack(
        self, items: Sequence[Item], acks: Sequence[Ack], required_leases: Sequence[UUID] = ()
    ) -> tuple[list[Pushed], list[Acked]]:
        """Append items and ack messages in one transaction; raises QueueFull or TransactionRefused."""
        await self.check(items)
        staging = await self._is_staging()
        done = await self._transactions.run(items, acks, required_leases, staging=staging)
        await self._wake({item.queue for item in items})
        return done

    async def append_within(
        self, connection: AsyncConnection[tuple[Any, ...]], items: Sequence[Item]
    ) -> None:
        """Append items within the caller's transaction; the caller checks first and wakes readers later."""
        await self._transactions.append(connection, items, staging=await self._is_staging())

    async def wake(self, queues: Set[str]) -> None:
        """Wake readers that wait for these queues, after the commit."""
        await self._wake(queues)

    async def check(self, items: Sequence[Item]) -> None:
        """Check as `append` does: raises Refused for queues of jobs, QueueFull for full ones."""
        for name, count in Counter([item.queue for item in items]).items():
            queue = await self._catalog.queue(name)
            if queue is not None and queue.has_rows:
                self._catalog.forget(name)  # it may have been recreated
                queue = await self._catalog.queue(name)
                refuse_rows([queue] if queue is not None else [])
            if queue is not None and queue.max_size > 0:
                await self._queues.check_room(queue, count)
