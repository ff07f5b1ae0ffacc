"""Appending to the log."""

from __future__ import annotations

from asyncio import Lock
from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import uuid4

import msgspec
from psycopg import AsyncConnection

from ..retry import repeat
from .catalog import Catalog, refuse_rows
from .database import Database
from .encryption import Cipher
from .errors import ChangedMeanwhile, DatabaseUnavailable
from .headers import to_text
from .queries import query

BLOCK = 1000  # ids in a block of the sequence message_blocks
_PAUSES = (0.0, 0.05, 0.2, 0.5)
_SEPARATOR = "\x01"  # never part of JSON text, and rejected in ids


def _null() -> msgspec.Raw:
    return msgspec.Raw(b"null")


class Item(msgspec.Struct, gc=False, rename="camel"):
    """One message to push, in its wire format; the payload is JSON text as received."""

    queue: str
    partition: str | None = "Default"
    transaction_id: str | None = None
    trace_id: str | None = None
    payload: msgspec.Raw = msgspec.field(default_factory=_null)
    headers: dict[str, str] | None = None

    @property
    def target(self) -> tuple[str, str]:
        """Queue and partition."""
        return self.queue, self.partition or "Default"


def complete(items: Sequence[Item]) -> None:
    """Assign a transaction id to every item without one, so that a retry is recognised."""
    for item in items:
        if not item.partition:
            item.partition = "Default"
        if not item.transaction_id:
            item.transaction_id = str(uuid4())


class Pushed(NamedTuple):
    """The result of one item."""

    id: int
    partition_id: int
    duplicate: bool


class Ids:
    """Message ids, allocated from the database in blocks."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._ranges: list[range] = []
        self._lock = Lock()
        self._blocks = 1

    async def take(self, count: int) -> list[int]:
        """Allocate new ids, ascending."""
        async with self._lock:
            while sum(map(len, self._ranges)) < count:
                self._blocks = min(64, max(2 * self._blocks, count // BLOCK + 1))
                rows = await self._database.rows("take_blocks", {"count": self._blocks})
                self._ranges += [range(number * BLOCK, (number + 1) * BLOCK) for (number,) in rows]
            taken: list[int] = []
            while len(taken) < count:
                first = self._ranges[0]
                need = count - len(taken)
                taken.extend(first[:need])
                if need < len(first):
                    self._ranges[0] = first[need:]
                else:
                    del self._ranges[0]
            return taken


class Pusher:
    """Pushes items, one statement per call."""

    def __init__(self, database: Database, catalog: Catalog, cipher: Cipher) -> None:
        self._database = database
        self._catalog = catalog
        self._cipher = cipher
        self.ids = Ids(database)

    def knowing(self, catalog: Catalog) -> Pusher:
        """Return a copy with another catalog and the same id blocks."""
        other = Pusher(self._database, catalog, self._cipher)
        other.ids = self.ids
        return other

    async def push(self, items: Sequence[Item]) -> list[Pushed]:
        """Append the items atomically; returns when they are on disk."""
        if not items:
            return []
        complete(items)
        ids = await self.ids.take(len(items))

        async def once() -> list[Pushed]:
            await self._catalog.resolve({item.target for item in items})
            async with self._database.connection() as connection:
                return await self.insert(connection, items, ids)

        # Ids and transaction ids are fixed: if the first attempt was committed after all, the retry finds its
        # own messages.
        return await repeat(once, (ChangedMeanwhile, DatabaseUnavailable), _PAUSES)

    async def insert(
        self, connection: AsyncConnection[Any], items: Sequence[Item], ids: list[int]
    ) -> list[Pushed]:
        """Insert on a given connection; raises ChangedMeanwhile if cached data of a queue is stale."""
        catalog = self._catalog
        try:
            known = catalog.partitions
            partition_ids = [known[item.target] for item in items]
            queues = {name: catalog.queues[name] for name in {item.queue for item in items}}
        except KeyError as error:
            raise ChangedMeanwhile("a queue was deleted while it was pushed to") from error
        refuse_rows(queues.values())
        encrypted = {queue.name for queue in queues.values() if queue.encryption_enabled}
        payloads = [
            self._cipher.encrypt(bytes(item.payload), item.transaction_id or "")
            if item.queue in encrypted
            else item.payload
            for item in items
        ]
        queue_ids = {name: str(queue.id) for name, queue in queues.items()}
        params = {
            "ids": " ".join(map(str, ids)),
            "partition_ids": " ".join(map(str, partition_ids)),
            "queue_ids": " ".join([queue_ids[item.queue] for item in items]),
            "transaction_ids": _SEPARATOR.join([item.transaction_id or "" for item in items]),
            "trace_ids": _SEPARATOR.join([item.trace_id or "" for item in items]),
            "payloads": _SEPARATOR.encode().join(payloads).decode(),
            "headers": _joined_headers(items),
            "encrypted": [queues[name].id for name in encrypted],
            "partitions": list(set(partition_ids)),
            "queues": [queue.id for queue in queues.values()],
            "revisions": [queue.revision for queue in queues.values()],
        }
        inserted = (await connection.execute(query("push"), params)).rowcount
        if inserted == len(items):
            return [Pushed(*pair, False) for pair in zip(ids, partition_ids, strict=True)]
        return await self._compare(connection, items, ids, partition_ids)

    async def _compare(
        self,
        connection: AsyncConnection[Any],
        items: Sequence[Item],
        ids: list[int],
        partition_ids: list[int],
    ) -> list[Pushed]:
        """Distinguish new messages, duplicates, and items that were not inserted at all."""
        params = {"partition_ids": partition_ids, "transaction_ids": [item.transaction_id for item in items]}
        rows = await (await connection.execute(query("find_ids"), params)).fetchall()
        found = {int(n): int(id_) for n, id_ in rows}
        if len(found) < len(items):
            for name in {item.queue for item in items}:
                self._catalog.forget(name)
            raise ChangedMeanwhile("a queue was deleted or changed while it was pushed to")
        return [
            Pushed(found[n], partition_id, found[n] != id_)
            for n, (id_, partition_id) in enumerate(zip(ids, partition_ids, strict=True), start=1)
        ]


def _joined_headers(items: Sequence[Item]) -> str | None:
    """Encode the headers of all items; None when no item has any."""
    headers = [item.headers for item in items]
    first = headers[0] if headers else None
    if headers.count(first) == len(headers):  # the usual case: none, or the name of one producer
        text = to_text(first)
        return None if text is None else _SEPARATOR.join([text] * len(headers))
    return _SEPARATOR.join([to_text(each) or "" for each in headers])
