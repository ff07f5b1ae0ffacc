"""PostgreSQL itself: its connections, and the size of its tables."""

from __future__ import annotations

from typing import Any

from .database import Database


class Server:
    """Facts about the PostgreSQL server."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def facts(self) -> dict[str, Any]:
        """Return version, database size, connections and their limit."""
        return (await self._database.records("postgres_facts"))[0]

    async def connections(self) -> list[dict[str, Any]]:
        """Return connections to this database by application, with the age of their oldest transaction."""
        return await self._database.records("postgres_connections")

    async def tables(self) -> list[dict[str, Any]]:
        """Return the largest tables, with their indexes."""
        return await self._database.records("postgres_tables")
