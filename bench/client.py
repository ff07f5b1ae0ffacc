"""`python -m bench.client`: windows and messages through the Python client, compared with raw HTTP.

Run by `make bench`. Windows are sealed here as the pipeline seals them, without Spark. The client runs in a
process of its own and discards the messages and windows it receives.
"""

import subprocess
import sys
import time
from contextlib import closing
from typing import Annotated, Any
from uuid import uuid4

import polars as pl
import psycopg
import typer

from bench.machine import Machine, running_machine
from bench.sheet import Sheet
from bench.streams import define, fill
from queenspark import Queen
from queenspark.store.progress import to_progress
from queenspark.store.window_sink import Bucket, Parts, WindowSink

KEYS = 10_000
PARTITIONS = 100
BATCH = 100
CONSUMERS = 8
AT_ONCE = 10
"""Consumers of raw HTTP, and windows that each of their polls takes."""

WINDOWS = """
SELECT s.queue_id, t.name, m.start, min(ARRAY[m.txid, m.id]), max(ARRAY[m.txid, m.id]), count(*), m.queue_id
FROM (SELECT *, floor(extract(epoch FROM created_at) / 60)::bigint AS start FROM queenspark.messages) m
JOIN queenspark.partitions t ON t.id = m.partition_id JOIN queenspark.queues q ON q.id = m.queue_id
JOIN queenspark.streams s ON s.id = %(stream)s
WHERE q.name = %(queue)s GROUP BY s.queue_id, t.name, m.start, m.queue_id ORDER BY m.start, t.name
"""
_SOURCE = {"source": pl.Int32, "first_txid": pl.Int64, "first_id": pl.Int64, "last_txid": pl.Int64,
           "last_id": pl.Int64}  # fmt: skip
_SCHEMA: dict[str, Any] = {
    "queue_id": pl.Int64, "key": pl.String, "window_id": pl.String, "start_us": pl.Int64, "end_us": pl.Int64,
    "count": pl.Int64, "revision": pl.Int64, "version": pl.Int32, "stream": pl.Int64,
    "sources": pl.List(pl.Struct(_SOURCE)), "replaces": pl.List(pl.String),
}  # fmt: skip


def seal(machine: Machine, queue: str, stream: int) -> int:
    """Seal the windows of a minute over all messages of a queue; return their number."""
    with psycopg.connect(machine.database_url) as connection:
        found = connection.execute(WINDOWS, {"stream": stream, "queue": queue}).fetchall()
    rows: list[tuple[Any, ...]] = [
        (queue_id, key, f"{stream}:{key}:{minute * 60_000}:{(minute + 1) * 60_000}", minute * 60_000_000,
         (minute + 1) * 60_000_000, count, 1, 1, stream, [(source, *first, *last)], [])
        for queue_id, key, minute, first, last, count, source in found
    ]  # fmt: skip
    windows = pl.DataFrame(
        [dict(zip(_SCHEMA, row, strict=True)) for row in map(_named, rows)], schema=_SCHEMA
    )
    nothing = pl.DataFrame()
    end = to_progress({"run": "bench", "n": 1, "tick": 1, "txid": 0, "id": 0})
    with closing(WindowSink(machine.database_url)) as sink:
        parts = Parts(windows, nothing, nothing, nothing, nothing, nothing)
        return sink.push(Bucket(0, stream, 1), end, parts).new


def _named(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A window whose sources have names."""
    *fields, sources, replaces = row
    return (*fields, [dict(zip(_SOURCE, source, strict=True)) for source in sources], replaces)


def rate_of(machine: Machine, kind: str, name: str, limit: int, **settings: int) -> float:
    """Windows or messages a second that a new group takes and acks, up to a limit."""
    machine.settle()
    given = [f"{option}={value}" for option, value in settings.items()]
    command = [
        sys.executable,
        "-m",
        "bench.client_process",
        machine.url,
        kind,
        name,
        uuid4().hex[:8],
        str(limit),
    ]
    done = subprocess.run([*command, *given], check=True, capture_output=True, text=True, timeout=600)
    count, seconds = map(float, done.stdout.split())
    return count / seconds


def poll_by_hand(machine: Machine, stream: str, count: int) -> float:
    """Windows a second with a request for each poll and each ack."""
    with Queen(machine.url) as queen:
        consumer = queen.consumer(stream, uuid4().hex[:8])
        began = time.perf_counter()
        for _ in range(count):
            window = consumer.poll()
            assert window is not None
            window.ack()
        return count / (time.perf_counter() - began)


def main(messages: Annotated[int, typer.Option(help="Messages in the queues.")] = 200_000) -> None:
    """Measure and print."""
    sheet = Sheet("The Python client on this machine, with PostgreSQL and the broker on the same cores")
    with running_machine() as machine, sheet.progress.status("measuring the client"):
        fill(machine, "views", messages, KEYS)
        some = min(seal(machine, "views", define(machine, "keys", "views")), 20_000)
        raw = rate_of(machine, "raw-windows", "keys", some, consumers=CONSUMERS, batch=AT_ONCE)
        comparison = f"raw HTTP, {CONSUMERS} consumers, {AT_ONCE} at once: {raw:,.0f} /s"
        rate = rate_of(machine, "windows", "keys", some)
        sheet.row("windows, process with default settings", f"{rate:,.0f} /s", comparison, "2,000 /s")
        rate = rate_of(machine, "windows", "keys", some, concurrency=8)
        sheet.row("windows, process(concurrency=8)", f"{rate:,.0f} /s", comparison, "2,000 /s")
        by_hand = poll_by_hand(machine, "keys", some // 20)
        sheet.row("windows, poll() and ack() one by one", f"{by_hand:,.0f} /s", "", "")
        fill(machine, "orders", messages, PARTITIONS)
        half = messages // 2
        raw = rate_of(machine, "raw-messages", "orders", half, consumers=CONSUMERS, batch=BATCH)
        comparison = f"raw HTTP, {CONSUMERS} consumers, batch {BATCH}: {raw:,.0f} /s"
        rate = rate_of(machine, "messages", "orders", half)
        sheet.row("messages, consume with default settings", f"{rate:,.0f} /s", comparison, "")
        rate = rate_of(machine, "messages", "orders", half, batch=BATCH, concurrency=8)
        sheet.row(f"messages, batch({BATCH}).concurrency(8).consume", f"{rate:,.0f} /s", comparison, "")
    sheet.show()


if __name__ == "__main__":
    typer.run(main)
