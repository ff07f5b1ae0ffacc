"""Pushes and acks in one database transaction, applied atomically."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection

from ..retry import repeat
from .catalog import Catalog
from .database import Database, OneConnection
from .delivery import Ack, Acked, Deliverer
from .errors import ChangedMeanwhile, TransactionRefused
from .maintenance import Maintenance
from .push import Item, Pushed, Pusher, complete
from .queries import query

_PAUSES = (0.0,) * 4


class Transactions:
    """Runs transactions across queues, fenced by leases."""

    def __init__(
        self,
        database: Database,
        catalog: Catalog,
        pusher: Pusher,
        deliverer: Deliverer,
        maintenance: Maintenance,
    ) -> None:
        self._database = database
        self._catalog = catalog
        self._pusher = pusher
        self._deliverer = deliverer
        self._maintenance = maintenance

    async def run(
        self,
        items: Sequence[Item],
        acks: Sequence[Ack],
        required_leases: Sequence[UUID] = (),
        *,
        staging: bool = False,
    ) -> tuple[list[Pushed], list[Acked]]:
        """Apply everything, or raise TransactionRefused (with the reason) and apply nothing.

        With `staging` (push maintenance is on) the pushes are staged in the same transaction.
        """
        complete(items)
        ids = await self._pusher.ids.take(len(items)) if items else []
        once = partial(self._run, items, ids, acks, required_leases, staging)
        return await repeat(once, (ChangedMeanwhile,), _PAUSES)

    async def append(
        self, connection: AsyncConnection[tuple[Any, ...]], items: Sequence[Item], *, staging: bool = False
    ) -> None:
        """Append items within the caller's transaction, also to queues created by it.

        Raises ChangedMeanwhile when the transaction should be retried.
        """
        complete(items)
        ids = await self._pusher.ids.take(len(items))
        # Objects created in this transaction may be rolled back: use a private cache.
        catalog = Catalog(OneConnection(self._database.url, connection))
        await catalog.resolve({item.target for item in items})
        if staging and await self._maintenance.knowing(catalog).insert(connection, items) is not None:
            return
        await self._pusher.knowing(catalog).insert(connection, items, ids)

    async def _run(
        self,
        items: Sequence[Item],
        ids: list[int],
        acks: Sequence[Ack],
        required_leases: Sequence[UUID],
        staging: bool,
    ) -> tuple[list[Pushed], list[Acked]]:
        await self._catalog.resolve({item.target for item in items})
        async with self._database.connection() as connection, connection.transaction():
            leases = {*required_leases, *(ack.lease_id for ack in acks if ack.lease_id is not None)}
            if leases:
                cursor = await connection.execute(query("require_leases"), {"lease_ids": list(leases)})
                live = {row[0] for row in await cursor.fetchall()}
                if not live.issuperset(required_leases):
                    raise TransactionRefused(
                        "a required lease has expired, was taken over or does not exist", "stale"
                    )
            # Cursors are locked before any message is inserted: the lock order of the whole store.
            results = await self._deliverer.ack_on(connection, acks, final=True)
            for ack, result in zip(acks, results, strict=True):
                if not result.accepted or result.outcome == "repeated":
                    raise TransactionRefused(
                        f"ack of {ack.transaction_id} rejected: {REASONS[result.outcome]}", result.outcome
                    )
            pushed: list[Pushed] | None = None if items else []
            if items and staging:
                pushed = await self._maintenance.insert(connection, items)
            if pushed is None:
                pushed = await self._pusher.insert(connection, items, ids)
            return pushed, results


#: Rejection reasons of acks, for people.
REASONS = {
    "stale": "invalid or expired lease",
    "unleased": "the message is not part of this lease",
    "unknown": "no such message for this consumer group",
    "repeated": "it was already acked, so this transaction has already taken effect or must not",
}
