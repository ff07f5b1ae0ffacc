"""Shorthands for common operations of the store's tests."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec
import psycopg

from queenspark.broker.queues import QueueOptions, columns
from queenspark.store.catalog import Queue
from queenspark.store.delivery import Ack, Acked, Batch, WindowPop
from queenspark.store.push import Item, Pushed
from queenspark.store.store import Store
from tests.database import connect


def item(
    queue: str,
    transaction_id: str | None = None,
    partition: str = "p",
    payload: Any = None,
    headers: dict[str, str] | None = None,
) -> Item:
    """A message to push."""
    return Item(queue, partition, transaction_id, None, msgspec.Raw(msgspec.json.encode(payload)), headers)


def names(batch: Batch | None) -> list[str]:
    """The transaction ids of a batch."""
    return [] if batch is None else [message.transaction_id for message in batch.messages]


class Desk:
    """Works with one queue `q` and one group `g` unless told otherwise."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        """A connection of the test's own, not in autocommit."""
        return connect(self.store.database.url, autocommit=False)

    async def configure(self, queue: str = "q", **options: Any) -> Queue:
        """Create the queue with options of the wire."""
        wanted = msgspec.convert(options, QueueOptions)
        return await self.store.queues.configure(queue, None, None, columns(wanted))

    async def push(self, *ids: str, queue: str = "q", partition: str = "p") -> list[Pushed]:
        """Push messages with these transaction ids."""
        return await self.store.pusher.push([item(queue, id_, partition) for id_ in ids])

    async def pop(self, batch: int = 10, group: str = "g", queue: str = "q", **more: Any) -> Batch | None:
        """Pop."""
        return await self.store.deliverer.pop(queue, group, batch=batch, **more)

    async def pop_each(self, number: int, group: str = "g", queue: str = "q") -> list[Batch]:
        """Pop one message under each of this many leases, ordered by name."""
        wishes = [WindowPop(queue, group, 60_000)] * number
        batches = await self.store.deliverer.pop_windows(wishes)
        return sorted((batch for batch in batches if batch is not None), key=names)

    async def popped(self, batch: int = 10, group: str = "g", **more: Any) -> list[str]:
        """Pop for good and return the transaction ids."""
        return names(await self.pop(batch, group, auto_ack=True, **more))

    async def ack(
        self,
        batch: Batch,
        ids: Sequence[str] | None = None,
        status: str | Sequence[str] = "completed",
        error: str | None = None,
        group: str = "g",
        lease_id: UUID | None = None,
    ) -> list[Acked]:
        """Ack some messages of a batch (all without `ids`)."""
        chosen = [message for message in batch.messages if ids is None or message.transaction_id in ids]
        statuses = [status] * len(chosen) if isinstance(status, str) else status
        return await self.store.deliverer.ack(
            [
                Ack(
                    message.partition_id,
                    message.transaction_id,
                    group,
                    lease_id or batch.lease_id,
                    each,
                    error,
                )
                for message, each in zip(chosen, statuses, strict=True)
            ]
        )

    async def outcomes(self, batch: Batch, *args: Any, **more: Any) -> list[str]:
        """Ack, and return the outcomes."""
        return [result.outcome for result in await self.ack(batch, *args, **more)]

    def run(self, statement: str, *params: Any) -> list[tuple[Any, ...]]:
        """A statement of the test's own."""
        with connect(self.store.database.url) as connection:
            cursor = connection.execute(statement, params)
            return cursor.fetchall() if cursor.description else []

    def expire_leases(self) -> None:
        """Expire all leases."""
        self.run(
            "UPDATE queenspark.places SET lease_expires_at = clock_timestamp() - interval '1 second',"
            " available_at = clock_timestamp() - interval '1 second' WHERE cardinality(leased) > 0"
        )

    def end_waits(self) -> None:
        """Make all retries and delayed messages due."""
        self.run(
            "UPDATE queenspark.places"
            " SET retry_at = NULL, available_at = clock_timestamp() - interval '1 second'"
            " WHERE available_at > clock_timestamp() AND cardinality(leased) = 0"
        )

    def age(self, seconds: float) -> None:
        """Make all messages older."""
        self.run(
            "UPDATE queenspark.messages SET created_at = created_at - make_interval(secs => %s)", seconds
        )
