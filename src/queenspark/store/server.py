"""PostgreSQL itself: its connections, and the size of its tables."""

from __future__ import annotations

from typing import Any

from .database import Database


class Server:
    """What the server says of itself."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def facts(self) -> dict[str, Any]:
        """Version, size of the database, connections and how many there may be."""
        return (await self._database.records("postgres_facts"))[0]

    async def connections(self) -> list[dict[str, Any]]:
        """Connections to this database by application, with the age of their oldest transaction."""
        return await self._database.records("postgres_connections")

    async def tables(self) -> list[dict[str, Any]]:
        """The largest tables, with their indexes."""
        return await self._database.records("postgres_tables")
