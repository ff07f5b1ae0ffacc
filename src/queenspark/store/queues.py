"""Queues: configure, list, count, delete."""

from __future__ import annotations

import time
from typing import Any

from .catalog import Catalog, Queue, to_queue
from .database import Database
from .errors import QueueFull

_FULL_SECONDS = 0.5  # how long a count for maxSize is believed
_MOST_BACKLOGS = 10_000


class Queues:
    """The queues of the database."""

    def __init__(self, database: Database, catalog: Catalog) -> None:
        self._database = database
        self._catalog = catalog
        self._backlogs: dict[int, tuple[float, int, float]] = {}

    async def configure(
        self, name: str, namespace: str | None, task: str | None, options: dict[str, Any]
    ) -> Queue:
        """Create or change a queue; all options are given."""
        params = {"name": name, "namespace": namespace, "task": task, **options}
        (record,) = await self._database.records("configure_queue", params)
        self._catalog.forget(name)
        return to_queue(record)

    async def delete(self, name: str) -> bool:
        """Delete a queue with all it holds; whether there was one."""
        row = await self._database.row("delete_queue", {"name": name})
        self._catalog.forget(name)
        return row is not None

    async def find(
        self, namespace: str | None = None, task: str | None = None, *, windows: bool = False
    ) -> list[tuple[Queue, int]]:
        """All queues (of a namespace or task), each with the number of its partitions.

        Window queues of streams are left out unless `windows` is set.
        """
        params = {"namespace": namespace, "task": task, "windows": windows}
        records = await self._database.records("list_queues", params)
        return [(to_queue(record), record["partitions"]) for record in records]

    async def names(self, namespace: str | None, task: str | None) -> list[str]:
        """Names of the queues of a namespace or task, the most important first."""
        rows = await self._database.rows("queues_of", {"namespace": namespace, "task": task})
        return [row[0] for row in rows]

    async def partitions(self, queue: Queue, limit: int = 1000, offset: int = 0) -> list[dict[str, Any]]:
        """Partitions of a queue, by name."""
        params = {"queue_id": queue.id, "limit": limit, "offset": offset}
        return await self._database.records("list_partitions", params)

    async def totals(self, queue: Queue | None = None) -> dict[int, int]:
        """Messages in the log by queue id."""
        rows = await self._database.rows("count_messages", {"queue_id": queue.id if queue else None})
        return {int(row[0]): int(row[1]) for row in rows}

    async def lag(self, queue: Queue | None = None) -> list[dict[str, Any]]:
        """Unanswered messages of each group: id, name, queue, queue_id, lag, processing, oldest."""
        return await self._database.records("group_lag", {"queue_id": queue.id if queue else None})

    async def check_room(self, queue: Queue, count: int) -> None:
        """Raise QueueFull when `count` more messages would exceed maxSize.

        The backlog is what the slowest group has not answered, or the whole log without groups. It is
        counted every half second, when the queue is full as often as counting is cheap, and pushes in
        between are added; so pushes in flight elsewhere may overshoot it.
        """
        if queue.max_size <= 0:
            return
        counted, backlog, took = self._backlogs.get(queue.id, (0.0, 0, 0.0))
        began = time.monotonic()
        age = began - counted
        if age > _FULL_SECONDS or (age > 5 * took and backlog + count > queue.max_size):
            if len(self._backlogs) > _MOST_BACKLOGS:
                self._backlogs.clear()
            lags = [int(row["lag"]) for row in await self.lag(queue)]
            if lags:
                backlog = max(lags)
            else:
                row = await self._database.row(
                    "count_queue", {"queue_id": queue.id, "limit": queue.max_size + 1}
                )
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
