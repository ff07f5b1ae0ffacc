"""Maintenance modes: pushes are staged instead of appended, pops return nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from psycopg import AsyncConnection

from .catalog import Catalog, refuse_rows
from .database import Database
from .encryption import Cipher
from .headers import from_text, to_text
from .push import Item, Pushed, Pusher, complete
from .queries import query

_BATCH = 1000


class Modes(NamedTuple):
    """The active maintenance modes."""

    push: bool
    pop: bool


class Maintenance:
    """Switches the modes, and stages pushes while push maintenance is on."""

    def __init__(self, database: Database, catalog: Catalog, pusher: Pusher, cipher: Cipher) -> None:
        self._database = database
        self._catalog = catalog
        self._pusher = pusher
        self._cipher = cipher

    async def modes(self) -> Modes:
        """The modes as stored."""
        row = await self._database.row("system")
        assert row is not None
        return Modes(bool(row[1]), bool(row[2]))

    async def is_staging(self) -> bool:
        """Whether push maintenance is on, as stored."""
        return (await self.modes()).push

    async def set_pop(self, enabled: bool) -> None:
        """Switch pop maintenance."""
        await self._database.execute("set_pop_maintenance", {"enabled": enabled})

    async def set_push(self, enabled: bool) -> int:
        """Switch push maintenance; when it ends, append staged messages and return their number."""
        if enabled:
            await self._database.execute("set_push_maintenance", {"enabled": True})
            return 0
        appended = 0
        while True:
            count = await self._append(_BATCH, last=False)
            appended += count
            if count < _BATCH:
                return appended + await self._append(1_000_000, last=True)

    async def staged(self) -> int:
        """The number of staged messages."""
        row = await self._database.row("count_staged")
        return int(row[0]) if row else 0

    async def stage(self, items: Sequence[Item]) -> list[Pushed] | None:
        """Stage items until push maintenance ends; return None if it just ended."""
        complete(items)
        await self._catalog.resolve({item.target for item in items})
        async with self._database.connection() as connection:
            return await self.insert(connection, items)

    def knowing(self, catalog: Catalog) -> Maintenance:
        """Return a copy with another catalog."""
        return Maintenance(self._database, catalog, self._pusher, self._cipher)

    async def insert(self, connection: AsyncConnection[Any], items: Sequence[Item]) -> list[Pushed] | None:
        """Do the same on a given connection."""
        known = self._catalog.queues
        refuse_rows(known[name] for name in {item.queue for item in items} if name in known)
        secret = {name for name, queue in self._catalog.queues.items() if queue.encryption_enabled}
        encrypted = [item.queue in secret for item in items]
        params = {
            "queues": [item.queue for item in items],
            "partitions": [item.partition for item in items],
            "encrypted": encrypted,
            "transaction_ids": [item.transaction_id for item in items],
            "trace_ids": [item.trace_id for item in items],
            "payloads": [self._stored(item, item.queue in secret) for item in items],
            "headers": [to_text(item.headers) for item in items],
        }
        rows = await (await connection.execute(query("stage"), params)).fetchall()
        if len(rows) < len(items):
            return None
        return [
            Pushed(int(row[0]), self._catalog.partitions.get(item.target, 0), False)
            for row, item in zip(rows, items, strict=True)
        ]

    async def _append(self, limit: int, *, last: bool) -> int:
        """Append staged messages in order.

        The last call waits for pushes that are being staged, and ends the mode.
        """
        async with self._database.connection() as connection:
            async with connection.transaction():
                await connection.execute(query("lock_system"))
                rows = await (await connection.execute(query("next_staged"), {"limit": limit})).fetchall()
                await self._catalog.resolve({(row[2], row[3]) for row in rows})
                for start in range(0, len(rows), _BATCH):
                    part = rows[start : start + _BATCH]
                    items = [self._item(row) for row in part]
                    await self._pusher.insert(connection, items, [row[1] for row in part])
                    await connection.execute(query("unstage"), {"seqs": [row[0] for row in part]})
                if last:
                    await connection.execute(query("set_push_maintenance"), {"enabled": False})
            return len(rows)

    def _item(self, row: tuple[Any, ...]) -> Item:
        _, _, queue, partition, encrypted, transaction_id, trace_id, payload, headers = row
        readable = self._readable(payload, encrypted, transaction_id)
        return Item(queue, partition, transaction_id, trace_id, readable, from_text(headers))

    def _stored(self, item: Item, encrypted: bool) -> str:
        raw = bytes(item.payload)
        return (self._cipher.encrypt(raw, item.transaction_id or "") if encrypted else raw).decode()

    def _readable(self, payload: str, encrypted: bool, transaction_id: str) -> msgspec.Raw:
        return msgspec.Raw((self._cipher.decrypt(payload, transaction_id) if encrypted else payload).encode())
