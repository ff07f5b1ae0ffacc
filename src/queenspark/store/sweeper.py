"""Retention: deletes removable messages in bounded batches, so that it never blocks anyone."""

from __future__ import annotations

from psycopg import AsyncConnection

from ..windows.membership import LEAVES_OUT
from .database import Database
from .definitions import WINDOW_QUEUES
from .queries import query

_LOCK = 0x7173737765657020  # one sweeper at a time
_MOST_BATCHES = 200  # per kind and queue in one run
_KEPT_RECORDS = 10_000  # late and dead records per stream
_NOTES = 200  # of a stream's needs, within the time that retention waits for it
_NOTHING = (2**62, 0)  # nothing is needed before this position


class Sweeper:
    """Deletes expired and completed messages, messages of deleted queues, and obsolete notes.

    Messages that a stream still needs are kept, for at most `hold_seconds` beyond their time.
    """

    def __init__(self, database: Database, batch: int = 5000, hold_seconds: float = 86400.0) -> None:
        self._database = database
        self._batch = batch
        self._hold_seconds = hold_seconds
        self._positions: dict[int, tuple[int, int]] = {}

    async def run(self) -> int:
        """Run once; return the number of deleted messages. Does nothing while another broker sweeps."""
        async with self._database.connection() as connection:
            row = await (await connection.execute("SELECT pg_try_advisory_lock(%s)", (_LOCK,))).fetchone()
            if row is None or not row[0]:
                return 0
            try:
                return await self._sweep(connection)
            finally:
                await connection.execute("SELECT pg_advisory_unlock(%s)", (_LOCK,))

    async def vacuum_places(self) -> bool:
        """Vacuum the table of cursors (`places`) if it has many dead rows; return whether it did.

        Each pop and each ack leaves a dead row with its index entries. Autovacuum checks once a minute; by
        then there may be hundreds of dead rows for each live one.
        """
        row = await self._database.row("places_need_vacuum")
        if row is None or not row[0]:
            return False
        await self._database.execute("vacuum_places")
        return True

    async def _sweep(self, connection: AsyncConnection[tuple[object, ...]]) -> int:
        removed = await self._repeat(connection, "sweep_deleted", {})
        await connection.execute(query("forget_deleted"))
        await connection.execute(query("thin_looks"), {"limit": self._batch})
        await connection.execute(query("forget_looks"))
        kept = {"keep": _KEPT_RECORDS, "kinds": list(LEAVES_OUT)}
        for statement in ("trim_late", "trim_dead"):
            await connection.execute(query(statement), kept)
        await connection.execute(query("forget_dropped"))
        queues = await (await connection.execute(query("queues_with_retention"))).fetchall()
        needs = await self._needs(connection, [int(str(row[0])) for row in queues])
        for number, name, enabled, retention, completed, ttl in queues:
            queue_id = int(str(number))
            txid, id_ = needs.get(queue_id, _NOTHING)
            params: dict[str, object] = {
                "queue_id": queue_id,
                "needs_txid": txid,
                "needs_id": id_,
                "hold_seconds": self._hold_seconds,
                "windows": str(name).startswith(WINDOW_QUEUES),
            }
            ages = [int(str(age)) for age in ((retention if enabled else 0), ttl) if age]
            if ages:
                removed += await self._sweep_old(connection, {**params, "seconds": min(ages)})
            if enabled and completed:
                params["seconds"] = int(str(completed))
                removed += await self._sweep_completed(connection, queue_id, params)
        return removed

    async def _needs(
        self, connection: AsyncConnection[tuple[object, ...]], queue_ids: list[int]
    ) -> dict[int, tuple[int, int]]:
        """Return the positions from which on streams still need these queues."""
        if not queue_ids:
            return {}
        params = {"queue_ids": queue_ids, "every": self._hold_seconds / _NOTES}
        await connection.execute(query("note_floors"), params)
        await connection.execute(query("forget_floors"))
        cursor = await connection.execute(query("needed_positions"), {"queue_ids": queue_ids})
        rows = [[int(str(value)) for value in row] for row in await cursor.fetchall()]
        return {queue_id: (txid, id_) for queue_id, txid, id_ in rows}

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

    async def _sweep_old(
        self, connection: AsyncConnection[tuple[object, ...]], params: dict[str, object]
    ) -> int:
        removed = 0
        for _ in range(_MOST_BATCHES):
            count, *_ = await self._delete(connection, "sweep_old", {**params, "limit": self._batch}) or (0,)
            removed += count
            if not count:
                break
        return removed

    async def _delete(
        self, connection: AsyncConnection[tuple[object, ...]], name: str, params: dict[str, object]
    ) -> tuple[int, ...] | None:
        """Delete a batch, and record its unread messages for jobs; return its size and further columns."""
        async with connection.transaction():
            row = await (await connection.execute(query(name), params)).fetchone()
            if row is None:
                return None
            count, txids, ids, *more = row
            if txids is not None:
                unread = {"queue_id": params["queue_id"], "txids": txids, "ids": ids}
                await connection.execute(query("note_unread"), unread)
        return tuple(int(str(value)) for value in (count, *more))

    async def _sweep_completed(
        self, connection: AsyncConnection[tuple[object, ...]], queue_id: int, params: dict[str, object]
    ) -> int:
        """Scan the queue's log once, over several runs if needed."""
        removed = 0
        for _ in range(_MOST_BATCHES):
            txid, id_ = self._positions.get(queue_id, (0, 0))
            params |= {"txid": txid, "id": id_, "limit": self._batch}
            found = await self._delete(connection, "sweep_completed", params)
            if found is None:
                self._positions.pop(queue_id, None)
                break
            count, txid, id_ = found
            removed += count
            self._positions[queue_id] = (txid, id_)
        return removed
