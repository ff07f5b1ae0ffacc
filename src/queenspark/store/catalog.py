"""The broker's cache of queues, partitions and groups.

Names are looked up once and cached. The cache is validated on use: a push carries the revisions that it
relied on, and a pop of a deleted group fails with a specific error; either then invalidates the entry and
retries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from .database import Database
from .errors import Refused

_MOST = 500_000  # cached names before the cache is cleared


class Queue(msgspec.Struct, frozen=True, gc=False):
    """A queue as stored."""

    id: int
    name: str
    namespace: str
    task: str
    created_at: datetime
    revision: int
    lease_seconds: int
    retry_limit: int
    retry_delay_ms: int
    ttl_seconds: int | None
    max_size: int
    priority: int
    delayed_seconds: int
    window_buffer_seconds: int
    retention_enabled: bool
    retention_seconds: int
    completed_retention_seconds: int
    encryption_enabled: bool
    dead_letters_enabled: bool
    dead_letter_queue: str | None
    max_wait_seconds: int
    #: Whether it holds the rows of a job, which nothing else may push to.
    has_rows: bool = False


def refuse_rows(queues: Iterable[Queue]) -> None:
    """Reject pushes to the queues of jobs."""
    for queue in queues:
        if queue.has_rows:
            raise Refused(
                f"queue {queue.name} is the output queue of job {queue.name}, and only that job"
                " can push to it; push to another queue"
            )


def to_queue(record: dict[str, Any]) -> Queue:
    """Build a queue from a table row, ignoring other columns."""
    return Queue(**{name: record[name] for name in Queue.__struct_fields__})


class Catalog:
    """Names and ids of queues, partitions and groups."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.queues: dict[str, Queue] = {}
        self.partitions: dict[tuple[str, str], int] = {}
        self._names: dict[int, tuple[str, str]] = {}
        self._queue_names: dict[int, str] = {}
        self._reading = asyncio.Lock()
        self._groups: dict[tuple[str, str], int] = {}

    async def resolve(self, wanted: Iterable[tuple[str, str]]) -> None:
        """Ensure that these (queue, partition) pairs exist and are cached."""
        missing = [pair for pair in wanted if pair not in self.partitions or pair[0] not in self.queues]
        if not missing:
            return
        if len(self.partitions) > _MOST:
            self.forget()
        names = sorted({queue for queue, _ in missing})
        records = await self._find_queues(names)
        if len(records) < len(names):
            await self._database.execute("ensure_queues", {"names": names})
            records = await self._find_queues(names)
        known = {record["name"]: to_queue(record) for record in records}
        self.queues.update(known)
        by_id = {queue.id: queue.name for queue in known.values()}
        pairs = sorted({(known[queue].id, partition) for queue, partition in missing if queue in known})
        params = {"queue_ids": [pair[0] for pair in pairs], "names": [pair[1] for pair in pairs]}
        rows = await self._database.rows("find_partitions", params)
        if len(rows) < len(pairs):
            await self._database.execute("ensure_partitions", params)
            rows = await self._database.rows("find_partitions", params)
        for queue_id, name, partition_id in rows:
            self.partitions[by_id[queue_id], name] = partition_id

    async def _find_queues(self, names: list[str]) -> list[dict[str, Any]]:
        return await self._database.records("find_queues", {"names": names})

    async def queue(self, name: str) -> Queue | None:
        """Return the queue of this name, if it exists."""
        if name not in self.queues:
            for record in await self._find_queues([name]):
                self.queues[name] = to_queue(record)
        return self.queues.get(name)

    async def ensure_queue(self, name: str) -> Queue | None:
        """Return the queue of this name, creating it if needed."""
        await self._database.execute("ensure_queues", {"names": [name]})
        return await self.queue(name)

    async def partition_id(self, queue: Queue, name: str) -> int | None:
        """Return the id of a partition, if it exists."""
        known = self.partitions.get((queue.name, name))
        if known is None:
            row = await self._database.row("find_partitions", {"queue_ids": [queue.id], "names": [name]})
            if row is not None:
                known = self.partitions[queue.name, name] = int(row[2])
        return known

    async def names_of(self, partition_ids: Iterable[int]) -> dict[int, tuple[str, str]]:
        """Return (partition, queue) names by partition id."""
        wanted = set(partition_ids)
        found = {id_: self._names[id_] for id_ in wanted if id_ in self._names}
        if missing := list(wanted - found.keys()):
            for id_, partition, queue in await self._database.rows("partition_names", {"ids": missing}):
                self.remember(id_, partition, queue)
                found[id_] = (partition, queue)
        return found

    def remember(self, partition_id: int, partition: str, queue: str) -> None:
        """Cache the names of a partition."""
        if len(self._names) > _MOST:
            self._names.clear()
        self._names[partition_id] = (partition, queue)

    async def queue_names(self, queue_ids: Iterable[int]) -> dict[int, str]:
        """Return names by id, of existing queues."""
        wanted = set(queue_ids)
        if not wanted <= self._queue_names.keys():
            async with self._reading:  # concurrent lookups share one query
                if missing := list(wanted - self._queue_names.keys()):
                    self._queue_names.update(await self._database.rows("queue_names", {"ids": missing}))
        return {id_: self._queue_names[id_] for id_ in wanted if id_ in self._queue_names}

    async def group_id(
        self, queue: Queue, name: str, mode: str = "all", start: datetime | None = None
    ) -> int:
        """Return the group on a queue; the first contact creates it, with its start position fixed."""
        known = self._groups.get((queue.name, name))
        if known is None:
            if len(self._groups) > _MOST:
                self.forget()
            params = {"queue_id": queue.id, "name": name, "mode": mode, "from": start}
            row = await self._database.row("ensure_group", params)
            assert row is not None
            known = self._groups[queue.name, name] = int(row[0])
        return known

    def known_group(self, queue: str, name: str) -> int | None:
        """Return the group if it is cached; never creates it."""
        return self._groups.get((queue, name))

    def forget(self, queue: str | None = None) -> None:
        """Invalidate the cache of one queue, or of all."""
        if queue is None:
            self.queues.clear()
            self.partitions.clear()
            self._groups.clear()
            self._names.clear()
            self._queue_names.clear()
            return
        self.queues.pop(queue, None)
        for pairs in (self.partitions, self._groups):
            for pair in [pair for pair in pairs if pair[0] == queue]:
                del pairs[pair]
