"""`python -m bench.streams`: windows over queues, with PostgreSQL, the broker and Spark on this machine.

Run by `make bench`. Beside the drain stands a plain Spark query over the same messages.
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import httpx2
import psycopg
import typer
from rich.console import Console

from bench.machine import Machine, running_machine
from queenspark.cli.pipeline_process import PipelineProcess
from queenspark.settings import Settings

MESSAGES = 2_000_000
KEYS = 5_000
SPAN_SECONDS = 1_200
"""Over how long a time the messages of the backlog are spread."""

FILL = """
INSERT INTO queenspark.messages (txid, id, partition_id, created_at, queue_id, transaction_id, payload)
SELECT queenspark.current_txid(), %(first)s + n, p.id,
       clock_timestamp() - make_interval(secs => %(span)s * (1 - (%(first)s + n) / %(total)s::float8) + 60),
       p.queue_id, 't' || (%(first)s + n), '{"n": 1}'
FROM generate_series(0, %(count)s - 1) n
JOIN LATERAL (
    SELECT id, queue_id FROM queenspark.partitions
    WHERE queue_id = %(queue_id)s AND name = 'k' || ((%(first)s + n)::bigint * 7919 %% %(keys)s)
) p ON true
"""


def fill(machine: Machine, queue: str, messages: int, keys: int) -> None:
    """Put messages of the past into a queue."""
    post(machine, "/api/v1/configure", {"queue": queue})
    with psycopg.connect(machine.database_url, autocommit=True) as connection:
        row = connection.execute("SELECT id FROM queenspark.queues WHERE name = %s", (queue,)).fetchone()
        assert row is not None
        connection.execute(
            "INSERT INTO queenspark.partitions (queue_id, name)"
            " SELECT %s, 'k' || n FROM generate_series(0, %s - 1) n",
            (row[0], keys),
        )
        for first in range(0, messages, 50_000):
            params = {
                "first": first, "count": min(50_000, messages - first), "total": messages, "keys": keys,
                "queue_id": row[0], "span": SPAN_SECONDS,
            }  # fmt: skip
            connection.execute(FILL, params)
        # As if the messages had been pushed at their times: what the clock was then belongs to it.
        connection.execute("DELETE FROM queenspark.looks")
        connection.execute(
            "INSERT INTO queenspark.looks SELECT min(created_at), txid, txid, min(created_at)"
            " FROM queenspark.messages WHERE queue_id = %s GROUP BY txid",
            (row[0],),
        )
        connection.execute("VACUUM ANALYZE queenspark.messages")
        connection.execute("CHECKPOINT")


def post(machine: Machine, path: str, body: Any) -> Any:
    """A call that must succeed."""
    response = httpx2.post(f"{machine.url}{path}", json=body, timeout=60.0)
    response.raise_for_status()
    return response.json() if response.content else None


def define(machine: Machine, name: str, queue: str, **fields: Any) -> int:
    """Define a stream; its id."""
    body = {
        "name": name, "namespace": "bench", "source_queue_names": [queue], "partitioned": True,
        "window_type": "tumbling", "window_duration_ms": 60_000, "window_grace_period_ms": 0, **fields,
    }  # fmt: skip
    return int(post(machine, "/api/v1/stream/define", body)["stream_id"])


@contextmanager
def running_pipeline(machine: Machine) -> Iterator[PipelineProcess]:
    """The pipeline, once it has sealed its first windows."""
    with tempfile.TemporaryDirectory(prefix="queenspark-bench-") as folder:
        pipeline = PipelineProcess(Settings(data_dir=Path(folder)), machine.database_url)
        pipeline.spawn()
        try:
            fill(machine, "warm-up", 20_000, 100)
            wait_for_records(machine, define(machine, "warm-up", "warm-up"), 20_000)
            yield pipeline
        finally:
            pipeline.stop()


def wait_for_records(machine: Machine, stream: int, count: int, within: float = 300.0) -> float:
    """Wait until a stream has read so many records; when that was."""
    deadline = time.monotonic() + within
    with psycopg.connect(machine.database_url, autocommit=True) as connection:
        while time.monotonic() < deadline:
            row = connection.execute(
                "SELECT coalesce(sum(records), 0) FROM queenspark.stream_stats WHERE stream_id = %s",
                (stream,),
            ).fetchone()
            if row is not None and row[0] >= count:
                return time.monotonic()
            time.sleep(0.02)
    raise RuntimeError(f"the stream did not read {count} records within {within} s")


def drain(machine: Machine, messages: int) -> float:
    """Messages a second while a new stream catches up with a backlog."""
    fill(machine, "backlog", messages, KEYS)
    began = time.monotonic()
    stream = define(machine, "backlog", "backlog")
    return messages / (wait_for_records(machine, stream, messages) - began)


def main(messages: Annotated[int, typer.Option(help="Size of the backlog.")] = MESSAGES) -> None:
    """Measure and print."""
    console = Console(width=120)
    with running_machine() as machine, running_pipeline(machine):
        rate = drain(machine, messages)
        console.print(f"a backlog of {messages:,} messages, {KEYS:,} keys: {rate:,.0f} messages/s")


if __name__ == "__main__":
    typer.run(main)
