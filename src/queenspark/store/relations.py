"""Schemas over queues and external sources, declared by SQL statements."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from psycopg import AsyncConnection

from .queries import query

Connection = AsyncConnection[tuple[Any, ...]]


class Declared(msgspec.Struct, frozen=True):
    """A declared relation; its statement is parsed on each read."""

    name: str
    kind: str
    statement: str
    created_at: datetime
    updated_at: datetime


class Relations:
    """The declared relations, on a connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def all(self) -> list[Declared]:
        """Return all of them, by name."""
        return await self._read(None)

    async def find(self, name: str) -> Declared | None:
        """Return the one of this name."""
        return next(iter(await self._read(name)), None)

    async def set(self, name: str, kind: str, statement: str) -> None:
        """Create or replace a declaration."""
        params = {"name": name, "kind": kind, "statement": statement}
        await self._connection.execute(query("set_relation"), params)

    async def delete(self, name: str) -> bool:
        """Delete a declaration; return whether it existed."""
        return (await self._connection.execute(query("delete_relation"), {"name": name})).rowcount > 0

    async def _read(self, name: str | None) -> list[Declared]:
        rows = await self._connection.execute(query("relations"), {"name": name})
        return [Declared(*row) for row in await rows.fetchall()]
