"""The same rows through one connection to PostgreSQL, without a broker and without HTTP.

A copy of the log's own table, with its columns and indexes, takes the rows; every batch is committed.
Rows are made before the clock starts, and reach the server as the broker sends them: as text that one
statement takes apart.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import psycopg

SEPARATOR = "\x01"
CHUNK_ROWS = 20_000
"""Rows that are made at a time, while the clock stands still."""

MAKE = (
    "CREATE SCHEMA bench",
    "CREATE TABLE bench.messages (LIKE queenspark.messages INCLUDING ALL)",
    "CREATE TABLE bench.cursors (partition_id bigint PRIMARY KEY, txid bigint NOT NULL, id bigint NOT NULL)",
)
REMOVE = "DROP SCHEMA bench CASCADE"

INSERT = """
INSERT INTO bench.messages (txid, id, partition_id, created_at, queue_id, transaction_id, payload)
SELECT pg_current_xact_id()::text::bigint, u.id, %(partition)s, clock_timestamp(), 1,
       u.transaction_id, u.payload
FROM unnest(string_to_array(%(ids)s, ' ')::bigint[], string_to_array(%(transaction_ids)s, E'\\x01'),
            string_to_array(%(payloads)s, E'\\x01')) AS u(id, transaction_id, payload)
"""

READ = """
SELECT m.id, m.txid, m.partition_id, m.created_at, m.transaction_id, m.trace_id, m.payload
FROM bench.messages m
WHERE m.partition_id = %(partition)s AND (m.txid, m.id) > (%(txid)s, %(id)s)
ORDER BY m.txid, m.id LIMIT %(batch)s
"""

MOVE = """
INSERT INTO bench.cursors (partition_id, txid, id) VALUES (%(partition)s, %(txid)s, %(id)s)
ON CONFLICT (partition_id) DO UPDATE SET txid = excluded.txid, id = excluded.id
"""

Rows = dict[str, Any]


class Bare:
    """Bare PostgreSQL, measured in the same database as the broker."""

    def __init__(self, database_url: str, partitions: int) -> None:
        self._url = database_url
        self._partitions = partitions
        self._numbers = count(1)

    def push_rate(self, batch: int, seconds: float) -> float:
        """Messages a second that one connection inserts, a commit per batch."""
        with self._connect() as connection:
            return self._insert(connection, batch, seconds)

    def pop_rate(self, batch: int, seconds: float) -> float:
        """Messages a second that one connection reads in order, moving one cursor row per batch."""
        with self._connect() as connection:
            self._insert(connection, 1000, seconds)
            connection.execute("ANALYZE bench.messages")
            read, spent, positions = 0, 0.0, dict.fromkeys(range(self._partitions), (0, 0))
            while spent < seconds and positions:
                for partition, (txid, number) in list(positions.items()):
                    started = time.perf_counter()
                    at = {"partition": partition, "txid": txid, "id": number, "batch": batch}
                    with connection.transaction():
                        rows = connection.execute(READ, at, prepare=True).fetchall()
                        if rows:
                            to = {"partition": partition, "txid": rows[-1][1], "id": rows[-1][0]}
                            connection.execute(MOVE, to, prepare=True)
                    spent += time.perf_counter() - started
                    read += len(rows)
                    if rows:
                        positions[partition] = (rows[-1][1], rows[-1][0])
                    else:
                        del positions[partition]
            return read / spent

    def latencies(self, rate: int, seconds: float) -> list[float]:
        """Milliseconds to insert a message, read it back in order and move the cursor, at a steady rate."""
        taken = []
        with self._connect() as connection:
            positions = dict.fromkeys(range(self._partitions), (0, 0))
            began = time.perf_counter()
            for number, rows in zip(range(int(rate * seconds)), self._batches(1), strict=False):
                time.sleep(max(0.0, began + number / rate - time.perf_counter()))
                started = time.perf_counter()
                connection.execute(INSERT, rows, prepare=True)
                txid, position = positions[rows["partition"]]
                at = {"partition": rows["partition"], "txid": txid, "id": position, "batch": 10}
                with connection.transaction():
                    found = connection.execute(READ, at, prepare=True).fetchall()
                    to = {"partition": rows["partition"], "txid": found[-1][1], "id": found[-1][0]}
                    connection.execute(MOVE, to, prepare=True)
                taken.append(1e3 * (time.perf_counter() - started))
                positions[rows["partition"]] = (found[-1][1], found[-1][0])
        return taken

    @contextmanager
    def _connect(self) -> Iterator[psycopg.Connection]:
        with psycopg.connect(self._url, autocommit=True) as connection:
            for statement in MAKE:
                connection.execute(statement)
            try:
                yield connection
            finally:
                connection.execute(REMOVE)

    def _insert(self, connection: psycopg.Connection, batch: int, seconds: float) -> float:
        inserted, spent = 0, 0.0
        batches = self._batches(batch)
        while spent < seconds:
            ready = [next(batches) for _ in range(max(1, CHUNK_ROWS // batch))]
            started = time.perf_counter()
            for rows in ready:
                connection.execute(INSERT, rows, prepare=True)
                inserted += batch
                if time.perf_counter() - started > seconds:
                    break
            spent += time.perf_counter() - started
        return inserted / spent

    def _batches(self, batch: int) -> Iterator[Rows]:
        """Rows like those that the load generator pushes."""
        for number in count():
            ids = [next(self._numbers) for _ in range(batch)]
            yield {
                "partition": number % self._partitions,
                "ids": " ".join(map(str, ids)),
                "transaction_ids": SEPARATOR.join([f"real-0-{i}" for i in ids]),
                "payloads": SEPARATOR.join([payload(i) for i in ids]),
            }


def payload(number: int) -> str:
    """A payload of the load generator's kind and size."""
    return (
        f'{{"id":{number},"user":"user-{number * 7919 % 1_000_000:06}","event":"page_view",'
        f'"amount":{number % 997}.25,"ok":true,"note":"abcdefghijklmnopqrstuvwxyz0123456789"}}'
    )
