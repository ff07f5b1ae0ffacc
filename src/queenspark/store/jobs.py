"""Jobs: streams that compute rows into a queue of their own: desired state, which the pipeline runs.

async with store.jobs.change() as change:      # one atomic transaction
    job = await change.create(WantedJob(...))
    await change.pause(job)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from .catalog import Catalog
from .database import Database
from .encryption import Cipher
from .job import Condition, Job, Row, error_of, to_job
from .job_change import JobChange
from .page import Page
from .queries import query

_ROWS_BYTES = 4 * 1024 * 1024  # of rows per read


class Jobs:
    """The jobs of the database."""

    def __init__(self, database: Database, catalog: Catalog, cipher: Cipher) -> None:
        self._database = database
        self._catalog = catalog
        self._cipher = cipher
        # A caller that holds a connection may need a second one, and pushes need some too. Callers that wait
        # for the lock of the definitions should wait without a connection.
        self._turns = asyncio.Semaphore(max(1, database.pool_size // 4))
        self._changing = asyncio.Lock()

    @asynccontextmanager
    async def change(self, *, dry_run: bool = False) -> AsyncIterator[JobChange]:
        """Open a transaction over jobs and declarations; with `dry_run` it is rolled back."""
        async with (
            self._changing,
            self._turns,
            self._database.connection() as connection,
            connection.transaction(force_rollback=dry_run),
        ):
            await connection.execute(query("lock_definitions"))
            change = JobChange(connection, self._cipher)
            yield change
        for name in change.changed_queues:
            self._catalog.forget(name)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[JobChange]:
        """Open the same for reading only, without the lock."""
        async with self._turns, self._database.connection() as connection:
            yield JobChange(connection, self._cipher)

    async def page(self, page: Page, namespace: str | None = None) -> tuple[list[Job], int]:
        """Return a page of the jobs (of a namespace), and the total."""
        rows, total = await self._database.page("list_jobs", page, namespace=namespace)
        return [to_job(row) for row in rows], total

    async def named(self, name: str, namespace: str | None = None) -> list[Job]:
        """Return the jobs of this name, at most one per namespace."""
        params = {"name": name, "namespace": namespace, "temporary": False}
        return [to_job(row) for row in await self._database.records("find_job", params)]

    async def conditions(self, jobs: Sequence[Job]) -> dict[int, Condition]:
        """Return the condition of some jobs, by id."""
        async with self.reading() as reading:
            return await reading.conditions(jobs)

    async def dead(self, job: Job, limit: int = 100, offset: int = 0) -> list[dict[str, Any]]:
        """Return failed records and rows with the reason, newest first."""
        return await self._records("list_dead", job, limit, offset)

    async def late(self, job: Job, limit: int = 100, offset: int = 0) -> list[dict[str, Any]]:
        """Return late records, newest first."""
        return await self._records("list_late", job, limit, offset)

    async def _records(self, name: str, job: Job, limit: int, offset: int) -> list[dict[str, Any]]:
        queue_ids = [source.queue_id for source in job.definition.sources]
        params = {"id": job.id, "queue_ids": queue_ids, "limit": limit, "offset": offset}
        return await self._database.records(name, params)

    async def rows(self, job: Job, after: tuple[int, int], limit: int) -> list[Row]:
        """Return rows of a job after a position, in log order, up to `limit` and a size limit."""
        position = {"txid": after[0], "id": after[1]}
        params = {"queue_id": job.queue_id, **position, "limit": limit, "most_bytes": _ROWS_BYTES}
        return [
            Row(txid, id_, self._cipher.decrypt(payload, transaction_id) if encrypted else payload)
            for txid, id_, payload, encrypted, transaction_id in await self._database.rows(
                "read_rows", params
            )
        ]

    async def rows_at_end(self, job: Job) -> int | None:
        """Return the number of rows of a job once its source has ended; None before."""
        row = await self._database.row("rows_at_end", {"id": job.id})
        return None if row is None else int(row[0])

    async def error(self, job: Job) -> str | None:
        """Return why a job failed; None if it did not."""
        troubles = await self._database.records("job_troubles", {"ids": [job.id]})
        return error_of(troubles[0]) if troubles else None

    async def renew(self, job: Job, seconds: float) -> bool:
        """Extend the life of a temporary job; return whether it still exists."""
        return await self._database.row("renew_job", {"id": job.id, "seconds": seconds}) is not None

    async def expire(self) -> list[str]:
        """Delete expired temporary jobs; return the names of their queues."""
        async with self.reading() as reading:
            if not await reading.expired():
                return []
        async with self.change() as change:
            for job in await change.expired():
                await change.drop(job)
        return change.changed_queues
