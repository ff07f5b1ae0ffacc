"""Consumer groups: list, seek, delete."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from .catalog import Catalog
from .database import Database


class Groups:
    """The consumer groups of the database. A group of that name may exist on several queues."""

    def __init__(self, database: Database, catalog: Catalog) -> None:
        self._database = database
        self._catalog = catalog

    async def find(self, name: str | None = None, queue: str | None = None) -> list[dict[str, Any]]:
        """Groups with their queue, number of places, live leases and last ack."""
        return await self._database.records("list_groups", {"name": name, "queue": queue})

    async def places(self, group_id: int, limit: int = 1000) -> list[dict[str, Any]]:
        """The places of a group, by partition."""
        return await self._database.records("list_places", {"group_id": group_id, "limit": limit})

    async def delete(self, name: str, queue: str | None = None, *, keep_start: bool = False) -> int:
        """Delete a group (on one queue, or all); with keep_start it begins anew from where it began."""
        statement = "restart_groups" if keep_start else "delete_groups"
        rows = await self._database.rows(statement, {"name": name, "queue": queue})
        self._catalog.forget(queue)
        return len(rows)

    async def set_start(self, name: str, time: datetime) -> int:
        """Where the group begins in partitions that it has no place in yet; the number of its queues."""
        return len(await self._database.rows("set_subscription", {"name": name, "time": time}))

    async def seek(
        self, queue: str, name: str, to: str, time: datetime | None = None, partition: str | None = None
    ) -> bool:
        """Move a group to 'end', 'beginning' or a 'time'; it is made if it does not exist.

        False when there is no such queue or partition.
        """
        known = await self._catalog.queue(queue)
        if known is None:
            return False
        partition_id = None
        if partition is not None:
            partition_id = await self._catalog.partition_id(known, partition)
            if partition_id is None:
                return False
        self._catalog.forget(queue)
        known = await self._catalog.queue(queue)
        if known is None:
            return False
        params = {
            "group_id": await self._catalog.group_id(known, name),
            "partition_id": partition_id,
            "queue_id": known.id,
            "to": to,
            "time": time,
        }
        await self._database.rows("seek_to", params)
        return True
