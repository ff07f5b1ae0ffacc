"""Traces: notes of consumers on a message."""

from __future__ import annotations

from typing import Any

from .database import Database


class Traces:
    """Notes on messages, indexed by message and by name."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(
        self,
        partition_id: int,
        transaction_id: str,
        group: str | None,
        event_type: str,
        names: list[str],
        data: str,
    ) -> int | None:
        """Add a note to a message (data is JSON text); return None if the partition does not exist."""
        params = {
            "partition_id": partition_id,
            "transaction_id": transaction_id,
            "group": group,
            "event_type": event_type,
            "names": names,
            "data": data,
        }
        row = await self._database.row("add_trace", params)
        return None if row is None else int(row[0])

    async def of_message(self, partition_id: int, transaction_id: str) -> list[dict[str, Any]]:
        """Return the traces of one message, oldest first."""
        return await self._list(partition_id=partition_id, transaction_id=transaction_id, limit=1000)

    async def of_name(
        self, name: str, limit: int = 100, offset: int = 0, visible: list[str] | None = None
    ) -> list[dict[str, Any]]:
        """Return the traces of one name, oldest first."""
        return await self._list(name=name, limit=limit, offset=offset, visible=visible)

    async def _list(self, **chosen: Any) -> list[dict[str, Any]]:
        params = {
            "partition_id": None,
            "transaction_id": None,
            "name": None,
            "visible": None,
            "limit": 100,
            "offset": 0,
            **chosen,
        }
        return await self._database.records("list_traces", params)

    async def names(
        self, limit: int = 100, offset: int = 0, visible: list[str] | None = None
    ) -> list[dict[str, Any]]:
        """Return all names, most recently used first."""
        params = {"limit": limit, "offset": offset, "visible": visible}
        return await self._database.records("trace_names", params)
