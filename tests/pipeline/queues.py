"""Queues for the tests of the data source."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
from pyspark.sql import DataFrame, SparkSession

from queenspark.broker.queues import QueueOptions, columns
from queenspark.store.push import Item
from queenspark.store.store import Store
from tests.database import connect

KEY = bytes(range(32))


class Queues:
    """Pushes to the queues of a database and reads them."""

    def __init__(self, url: str) -> None:
        self.url = url

    def with_store(self, use: Callable[[Store], Awaitable[Any]]) -> Any:
        """Do something with an open store."""

        async def opened() -> Any:
            store = Store(self.url, pool_size=2, encryption_key=KEY)
            await store.open()
            try:
                return await use(store)
            finally:
                await store.close()

        return asyncio.run(opened())

    def configure(self, queue: str, **options: Any) -> None:
        """Create the queue with options of the wire."""
        chosen = columns(msgspec.convert(options, QueueOptions))
        self.with_store(lambda store: store.queues.configure(queue, None, None, chosen))

    def push(
        self, queue: str, *payloads: Any, partition: str = "p", headers: dict[str, str] | None = None
    ) -> None:
        """Push payloads, with transaction ids t0, t1 and so on."""
        items = [
            Item(queue, partition, f"t{n}", None, msgspec.Raw(msgspec.json.encode(payload)), headers)
            for n, payload in enumerate(payloads)
        ]
        self.with_store(lambda store: store.pusher.push(items))

    def fill(self, queue: str, count: int) -> None:
        """Push this many messages quickly, with their number as payload."""
        self.configure(queue)
        self.run(
            "INSERT INTO queenspark.partitions (queue_id, name)"
            " SELECT id, 'p' || n FROM queenspark.queues, generate_series(0, 9) n WHERE queues.name = %s",
            queue,
        )
        self.run(
            "INSERT INTO queenspark.messages"
            " (txid, id, partition_id, created_at, queue_id, transaction_id, payload)"
            " SELECT current_txid(), n, p.id, clock_timestamp(), p.queue_id, 'n' || n, n::text"
            " FROM generate_series(1, %s) n"
            " JOIN queenspark.partitions p ON p.name = 'p' || n %% 10"
            " JOIN queenspark.queues q ON q.id = p.queue_id WHERE q.name = %s",
            count,
            queue,
        )

    def run(self, statement: str, *params: Any) -> list[tuple[Any, ...]]:
        """A statement of the test's own."""
        with connect(self.url) as connection:
            cursor = connection.execute(statement, params or None)
            return cursor.fetchall() if cursor.description else []

    def payloads(self, queue: str) -> list[Any]:
        """The content of a queue, in log order."""
        rows = self.run(
            "SELECT m.payload FROM queenspark.messages m JOIN queenspark.queues q ON q.id = m.queue_id"
            " WHERE q.name = %s ORDER BY m.txid, m.id",
            queue,
        )
        return [msgspec.json.decode(row[0]) for row in rows]

    def frame(self, spark: SparkSession, queues: Sequence[str], **options: str) -> DataFrame:
        """Queues as a DataFrame."""
        reader = spark.read.format("queen").options(url=self.url, queues=",".join(queues), **options)
        return reader.load()

    def stream(self, spark: SparkSession, queues: Sequence[str], **options: str) -> DataFrame:
        """Queues as a stream."""
        reader = spark.readStream.format("queen").options(url=self.url, queues=",".join(queues), **options)
        return reader.load()
