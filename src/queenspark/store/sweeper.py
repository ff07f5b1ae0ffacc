"""Retention: removes what may go, a bounded batch at a time, so that it never blocks anybody."""

from __future__ import annotations

from psycopg import AsyncConnection

from .database import Database
from .queries import query

_LOCK = 0x7173737765657020  # one sweeper at a time
_MOST_BATCHES = 200  # of one kind and queue in one run


class Sweeper:
    """Deletes expired and completed messages, messages of deleted queues, and looks that nobody needs."""

    def __init__(self, database: Database, batch: int = 5000) -> None:
        self._database = database
        self._batch = batch
        self._positions: dict[int, tuple[int, int]] = {}

    async def run(self) -> int:
        """One run; how many messages were removed. Does nothing when another broker is sweeping."""
        async with self._database.connection() as connection:
            row = await (await connection.execute("SELECT pg_try_advisory_lock(%s)", (_LOCK,))).fetchone()
            if row is None or not row[0]:
                return 0
            try:
                return await self._sweep(connection)
            finally:
                await connection.execute("SELECT pg_advisory_unlock(%s)", (_LOCK,))

    async def _sweep(self, connection: AsyncConnection[tuple[object, ...]]) -> int:
        removed = await self._repeat(connection, "sweep_deleted", {})
        await connection.execute(query("forget_deleted"))
        await connection.execute(query("thin_looks"), {"limit": self._batch})
        await connection.execute(query("forget_looks"))
        queues = await (await connection.execute(query("queues_with_retention"))).fetchall()
        for queue_id, _, enabled, retention, completed, ttl in queues:
            ages = [int(str(age)) for age in ((retention if enabled else 0), ttl) if age]
            if ages:
                removed += await self._repeat(
                    connection, "sweep_old", {"queue_id": queue_id, "seconds": min(ages)}
                )
            if enabled and completed:
                removed += await self._sweep_completed(connection, int(str(queue_id)), int(str(completed)))
        return removed

    async def _repeat(
        self, connection: AsyncConnection[tuple[object, ...]], name: str, params: dict[str, object]
    ) -> int:
        removed = 0
        for _ in range(_MOST_BATCHES):
            count = (await connection.execute(query(name), {**params, "limit": self._batch})).rowcount
            removed += count
            if not count:
                break
        return removed

    async def _sweep_completed(
        self, connection: AsyncConnection[tuple[object, ...]], queue_id: int, seconds: int
    ) -> int:
        """Walk the queue's log once around, over several runs if need be."""
        removed = 0
        for _ in range(_MOST_BATCHES):
            txid, id_ = self._positions.get(queue_id, (0, 0))
            params = {"queue_id": queue_id, "seconds": seconds, "txid": txid, "id": id_, "limit": self._batch}
            row = await (await connection.execute(query("sweep_completed"), params)).fetchone()
            if row is None:
                self._positions.pop(queue_id, None)
                break
            count, txid, id_ = (int(str(value)) for value in row)
            removed += count
            self._positions[queue_id] = (txid, id_)
        return removed
