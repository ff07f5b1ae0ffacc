"""Delivery and acks: pop, ack, extend, release."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import psycopg
from psycopg import AsyncConnection

from ..retry import repeat
from .catalog import Catalog, Queue
from .database import Database, Params
from .definitions import WINDOW_QUEUES
from .encryption import Cipher
from .errors import ChangedMeanwhile, Conflict, StoreError
from .queries import query

QUEUE_MODE = "__QUEUE_MODE__"  # the group of consumers without one
_PAUSES = (0.0, 0.01, 0.05)  # between retries of a pop
_GONE = ("QS001", "23503")  # the group, its queue or its partition was deleted


Holders = Mapping[UUID, str | None]  # consumers by lease


class Message(NamedTuple):
    """A delivered message."""

    id: int
    partition_id: int
    partition: str
    created_us: int
    encrypted: bool
    retries: int
    lease_expired: bool
    transaction_id: str
    trace_id: str | None
    payload: str
    headers: str | None  # JSON text


class Batch(NamedTuple):
    """The messages of one pop."""

    queue: Queue
    group_id: int
    lease_id: UUID
    messages: list[Message]


class Ack(NamedTuple):
    """An ack of a consumer. Status: completed, failed, retry or dlq."""

    partition_id: int
    transaction_id: str
    group: str
    lease_id: UUID | None
    status: str
    error: str | None


class Acked(NamedTuple):
    """The outcome of an ack: completed, retry, dead, repeated, stale, unleased, unknown."""

    outcome: str
    attempts: int
    released: bool
    more: bool

    @property
    def accepted(self) -> bool:
        """Whether the ack was accepted."""
        return self.outcome in ("completed", "retry", "dead", "repeated")


#: Whether a client still waits for the result of a pop.
IsWanted = Callable[[], Awaitable[bool]]


async def _always() -> bool:
    return True


class WindowPop(NamedTuple):
    """A request for one message of a window queue."""

    queue: str
    group: str
    lease_ms: int
    is_wanted: IsWanted = _always
    holder: str | None = None


class _Wanted(NamedTuple):
    """The target of a pop."""

    queue: str
    group: str
    is_wanted: IsWanted
    mode: str = "all"
    start: datetime | None = None
    partition: str | None = None


async def _any(checks: Iterable[IsWanted]) -> bool:
    for check in checks:
        if await check():
            return True
    return False


class Deliverer:
    """Leases messages to consumers and processes their acks."""

    def __init__(self, database: Database, catalog: Catalog, cipher: Cipher) -> None:
        self._database = database
        self._catalog = catalog
        self._cipher = cipher

    async def pop(
        self,
        queue: str,
        group: str,
        *,
        batch: int = 1,
        partitions: int = 1,
        partition: str | None = None,
        auto_ack: bool = False,
        mode: str = "all",
        start: datetime | None = None,
        lease_ms: int | None = None,
        holder: str | None = None,
        is_wanted: IsWanted = _always,
    ) -> Batch | None:
        """Lease up to `batch` messages (or consume them with auto_ack); None when there are none.

        A lease lasts for `lease_ms`, or for the queue's lease time; `holder` names its consumer. A missing
        group is created, unless the pop is no longer wanted: the client that disconnected may have deleted
        it.
        """
        wanted = _Wanted(queue, group, is_wanted, mode, start, partition)
        how = {"batch": batch, "partitions": partitions, "auto_ack": auto_ack, "lease_ms": lease_ms}
        batches = await self._hand_out(wanted, {uuid4(): holder}, how)
        return batches[0] if batches else None

    async def pop_windows(self, wishes: Sequence[WindowPop]) -> list[Batch | None]:
        """Lease one message per request, each of a different partition and under its own lease."""
        found: list[Batch | None] = [None] * len(wishes)
        alike: dict[tuple[str, str, int], list[int]] = {}
        for n, wish in enumerate(wishes):
            alike.setdefault((wish.queue, wish.group, wish.lease_ms), []).append(n)
        for (queue, group, lease_ms), numbers in alike.items():
            checks = [wishes[n].is_wanted for n in numbers]
            wanted = _Wanted(queue, group, partial(_any, checks))
            how = {"batch": 1, "partitions": 1, "auto_ack": False, "lease_ms": lease_ms}
            try:
                batches = await self._hand_out(wanted, {uuid4(): wishes[n].holder for n in numbers}, how)
            except (StoreError, psycopg.Error):
                if not any(found):
                    raise
                break  # deliver the messages leased so far; the others are retried by their callers
            for n, batch in zip(numbers, batches, strict=False):
                found[n] = batch
                message = batch.messages[0]
                self._catalog.remember(message.partition_id, message.partition, queue)
        return found

    async def _hand_out(self, wanted: _Wanted, leases: Holders, how: Params) -> list[Batch]:
        """Return the batches of some leases; fewer if there are not enough messages."""
        try:
            return await repeat(
                partial(self._try, wanted, leases, how), (ChangedMeanwhile, Conflict), _PAUSES
            )
        except ChangedMeanwhile:
            return []

    async def _try(self, wanted: _Wanted, leases: Holders, how: Params) -> list[Batch]:
        catalog = self._catalog
        queue = await catalog.queue(wanted.queue)
        if queue is None and wanted.mode == "new" and not wanted.queue.startswith(WINDOW_QUEUES):
            # The group's start is fixed now, although the queue does not exist yet.
            queue = await catalog.ensure_queue(wanted.queue)
        if queue is None:
            return []
        partition_id = None
        if wanted.partition is not None:
            partition_id = await catalog.partition_id(queue, wanted.partition)
        if catalog.known_group(queue.name, wanted.group) is None and not await wanted.is_wanted():
            return []
        batches: dict[UUID, list[Message]] = {}
        try:
            group_id = await catalog.group_id(queue, wanted.group, wanted.mode, wanted.start)
            if wanted.partition is not None and partition_id is None:
                return []
            more = True
            while more and (free := [lease_id for lease_id in leases if lease_id not in batches]):
                params = {
                    **how,
                    "group_id": group_id,
                    "partition_id": partition_id,
                    "lease_ids": free,
                    "holders": [leases[lease_id] for lease_id in free],
                }
                more = await self._pop(queue, params, batches)
        except psycopg.Error as error:
            if error.sqlstate not in _GONE:
                raise
            catalog.forget(queue.name)
            raise ChangedMeanwhile(f"a group of the queue {queue.name} was deleted during a pop") from error
        return [Batch(queue, group_id, lease_id, messages) for lease_id, messages in batches.items()]

    async def _pop(self, queue: Queue, params: Params, batches: dict[UUID, list[Message]]) -> bool:
        """Add popped messages to the batches; return whether another pop would find more."""
        if not queue.encryption_enabled and queue.revision == 1:
            rows = await self._database.rows("pop", params)
        else:
            # Some messages may be encrypted: if decryption fails here, the transaction delivers nothing.
            async with self._database.connection() as connection, connection.transaction():
                rows = await (await connection.execute(query("pop"), params)).fetchall()
                rows = [(lease_id, *self._decrypted(Message(*message))) for lease_id, *message in rows]
        more = bool(rows) and rows[-1][1] is None
        for lease_id, *message in rows[: len(rows) - more]:
            batches.setdefault(lease_id, []).append(Message(*message))
        return more

    def _decrypted(self, message: Message) -> Message:
        if not message.encrypted:
            return message
        return message._replace(payload=self._cipher.decrypt(message.payload, message.transaction_id))

    async def next_check(
        self, queue: str, group: str, partition: str | None = None
    ) -> tuple[bool, float | None]:
        """Return whether messages wait above the horizon, and the seconds until a cursor is available."""
        known = await self._catalog.queue(queue)
        group_id = self._catalog.known_group(queue, group)
        if known is None or group_id is None:
            return False, None
        partition_id = await self._catalog.partition_id(known, partition) if partition is not None else None
        if partition is not None and partition_id is None:
            return False, None
        row = await self._database.row("next_check", {"group_id": group_id, "partition_id": partition_id})
        if row is None:
            return False, None
        return bool(row[0]), None if row[1] is None else int(row[1]) / 1000

    async def ack(self, acks: Sequence[Ack]) -> list[Acked]:
        """Process acks; those of one cursor and lease together, each cursor independently."""
        async with self._database.connection() as connection:
            return await self.ack_on(connection, acks)

    async def ack_on(
        self, connection: AsyncConnection[Any], acks: Sequence[Ack], *, final: bool = False
    ) -> list[Acked]:
        """Process acks on a given connection; with `final`, a failure is dead-lettered at once."""
        cursors: dict[tuple[int, str, str], list[int]] = {}
        for n, ack in enumerate(acks):
            cursors.setdefault((ack.partition_id, ack.group, str(ack.lease_id)), []).append(n)
        # Sorted, so that two requests cannot deadlock on each other's cursors.
        order = [numbers for _, numbers in sorted(cursors.items())]
        numbers = [n for cursor in order for n in cursor]
        ends = list(accumulate(map(len, order)))
        params = {
            "partition_ids": [acks[cursor[0]].partition_id for cursor in order],
            "groups": [acks[cursor[0]].group for cursor in order],
            "lease_ids": [acks[cursor[0]].lease_id for cursor in order],
            "firsts": [end - len(cursor) + 1 for cursor, end in zip(order, ends, strict=True)],
            "lasts": ends,
            "transaction_ids": [acks[n].transaction_id for n in numbers],
            "statuses": [acks[n].status for n in numbers],
            "errors": [acks[n].error for n in numbers],
            "final": final,
        }
        rows = await (await connection.execute(query("ack"), params)).fetchall()
        results = dict(zip(numbers, (Acked(*row) for row in rows), strict=True))
        return [results[n] for n in range(len(acks))]

    async def extend(self, lease_id: UUID, seconds: float | None) -> tuple[int, datetime] | None:
        """Extend a live lease; return the number of cursors and the earliest new end, or None."""
        row = await self._database.row("extend", {"lease_id": lease_id, "seconds": seconds})
        return None if row is None or not row[0] else (int(row[0]), row[1])

    async def release(self, lease_id: UUID) -> int:
        """Release a lease without acks."""
        row = await self._database.row("release", {"lease_id": lease_id})
        return 0 if row is None else int(row[0])
