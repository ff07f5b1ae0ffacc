"""Consumer groups: list, seek, delete."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from .catalog import Catalog
from .counts import EXACT, FEW
from .database import Database
from .page import Page, Rows


class Groups:
    """The consumer groups of the database. A name may exist on several queues."""

    def __init__(self, database: Database, catalog: Catalog) -> None:
        self._database = database
        self._catalog = catalog

    async def page(
        self,
        page: Page,
        name: str | None = None,
        queue: str | None = None,
        queue_ids: list[int] | None = None,
        min_lag_seconds: float | None = None,
    ) -> Rows:
        """Return a page of the groups, one row per queue of a group, and the total.

        Columns: cursors, live leases, last ack, lag (unacked messages), processing (leased ones), oldest
        (unacked message) and dead letters. `min_lag_seconds` filters by the age of the oldest.
        """
        chosen = {"name": name, "queue": queue, "queue_ids": queue_ids, "min_lag_seconds": min_lag_seconds}
        rows, total = await self._database.page("list_groups", page, **chosen)
        small = [row["id"] for row in rows if row["lag"] <= EXACT and row["places"] <= EXACT]
        if rows and len(rows) <= FEW:
            found = await self._database.records("groups_now", {"ids": small, "exact": EXACT})
            now = {row.pop("id"): row for row in found if row.pop("exact")}
            for row in rows:
                row.update(now.get(row["id"], {}))
        return rows, total

    async def queues_of(self, name: str, queue: str | None = None) -> list[dict[str, Any]]:
        """Return the queues of a group: id (of the group there), name, queue."""
        return await self._database.records("groups_of", {"name": name, "queue": queue})

    async def cursors(
        self, group_ids: list[int], limit: int = 1000, offset: int = 0, *, leased: bool = False
    ) -> list[dict[str, Any]]:
        """Return the cursors of some groups, by queue and partition; or those with a lease, by its end."""
        params = {"group_ids": group_ids, "limit": limit, "offset": offset}
        return await self._database.records("list_leases" if leased else "list_places", params)

    async def delete(
        self,
        name: str,
        queue: str | None = None,
        *,
        keep_start: bool = False,
        visible: list[str] | None = None,
    ) -> int:
        """Delete a group (on one queue, or all that match a pattern of `visible`).

        With keep_start it starts again from its original start position.
        """
        statement = "restart_groups" if keep_start else "delete_groups"
        rows = await self._database.rows(statement, {"name": name, "queue": queue, "visible": visible})
        self._catalog.forget(queue)
        return len(rows)

    async def set_start(self, name: str, time: datetime, visible: list[str] | None = None) -> int:
        """Set the start position for partitions without a cursor; return the number of queues."""
        params = {"name": name, "time": time, "visible": visible}
        return len(await self._database.rows("set_subscription", params))

    async def seek(
        self, queue: str, name: str, to: str, time: datetime | None = None, partition: str | None = None
    ) -> bool:
        """Move a group to 'end', 'beginning' or a 'time', creating it if needed.

        Returns False if the queue or partition does not exist.
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
