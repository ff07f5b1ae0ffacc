"""Queues: configure, list, count, delete."""

from __future__ import annotations

import time
from typing import Any

from .catalog import Catalog, Queue, to_queue
from .counts import EXACT, FEW
from .database import Database
from .errors import QueueFull, Refused
from .groups import Groups
from .page import Page, Rows

_FULL_SECONDS = 0.5  # how long a count for maxSize is cached
_MOST_BACKLOGS = 10_000


class Queues:
    """The queues of the database."""

    def __init__(self, database: Database, catalog: Catalog, groups: Groups) -> None:
        self._database = database
        self._catalog = catalog
        self._groups = groups
        self._backlogs: dict[int, tuple[float, int, float]] = {}

    async def configure(
        self, name: str, namespace: str | None, task: str | None, options: dict[str, Any]
    ) -> Queue:
        """Create or reconfigure a queue; all options are given."""
        params = {"name": name, "namespace": namespace, "task": task, **options}
        (record,) = await self._database.records("configure_queue", params)
        self._catalog.forget(name)
        return to_queue(record)

    async def delete(self, name: str) -> bool:
        """Delete a queue with its messages; return whether it existed. Refuses the queue of a job."""
        self._catalog.forget(name)
        queue = await self._catalog.queue(name)
        if queue is not None and queue.has_rows:
            raise Refused(f"queue {name} is the output queue of a job; DROP STREAM {name} deletes both")
        row = await self._database.row("delete_queue", {"name": name})
        self._catalog.forget(name)
        return row is not None

    async def page(self, page: Page, *, windows: bool = False, **chosen: str | None) -> Rows:
        """Return a page of the queues (of a name, namespace, task) with their counts, and the total.

        Window queues of streams are skipped unless `windows` is set.
        """
        wanted = {"name": None, "namespace": None, "task": None, **chosen}
        rows, total = await self._database.page("list_queues", page, windows=windows, **wanted)
        if len(rows) <= FEW:
            await self._bring_up_to_date(rows)
        return rows, total

    async def _bring_up_to_date(self, rows: list[dict[str, Any]]) -> None:
        """Make small counts exact."""
        ids = [row["id"] for row in rows]
        params = {"ids": ids, "exact": EXACT}
        now = {row["id"]: row for row in await self._database.records("queues_now", params)}
        groups, total = await self._groups.page(Page(FEW + 1), queue_ids=ids)
        lags: dict[int, list[dict[str, Any]]] = {}
        for group in groups:
            lags.setdefault(group["queue_id"], []).append(group)
        for row in rows:
            row.update(now[row["id"]])
            if total <= FEW:
                own = lags.get(row["id"], [])
                row["processing"] = sum(group["processing"] for group in own)
                waiting = [group["lag"] - group["processing"] for group in own]
                row["pending"] = max(0, *waiting) if waiting else row["messages"]

    async def names(self, namespace: str | None, task: str | None) -> list[str]:
        """Return the names of the queues of a namespace or task, by priority."""
        rows = await self._database.rows("queues_of", {"namespace": namespace, "task": task})
        return [row[0] for row in rows]

    async def partitions(self, queue: Queue, page: Page) -> list[dict[str, Any]]:
        """Return a page of the partitions of a queue."""
        return await self._database.records("list_partitions", {"queue_id": queue.id, **page.params()})

    async def check_room(self, queue: Queue, count: int) -> None:
        """Raise QueueFull if `count` more messages would exceed maxSize.

        The backlog is the number of messages not acked by the slowest group, or the whole log without groups.
        It is counted, up to maxSize, every half second, or more often on a full queue if counting is cheap;
        pushes in between are added. Pushes in flight elsewhere may overshoot it.
        """
        if queue.max_size <= 0:
            return
        counted, backlog, took = self._backlogs.get(queue.id, (0.0, 0, 0.0))
        began = time.monotonic()
        age = began - counted
        if age > _FULL_SECONDS or (age > 5 * took and backlog + count > queue.max_size):
            if len(self._backlogs) > _MOST_BACKLOGS:
                self._backlogs.clear()
            params = {"queue_id": queue.id, "limit": queue.max_size + 1}
            row = await self._database.row("backlog", params)
            backlog = int(row[0]) if row else 0
            counted = time.monotonic()
            took = counted - began
        if backlog + count > queue.max_size:
            self._backlogs[queue.id] = (counted, backlog, took)
            raise QueueFull(
                f"queue {queue.name} is full: maxSize is {queue.max_size}"
                f" and {backlog} messages wait to be consumed"
            )
        self._backlogs[queue.id] = (counted, backlog + count, took)
