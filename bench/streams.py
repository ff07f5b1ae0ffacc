"""`python -m bench.streams`: windows over queues, with PostgreSQL, the broker and Spark on this machine.

Run by `make bench`. The drain is compared with a plain Spark query over the same messages.
"""

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import httpx2
import psycopg
import typer

from bench.cpu import tree_seconds
from bench.machine import Machine, running_machine
from bench.sheet import Sheet
from bench.wrk import WrkError, run_wrk
from queenspark.cli.pipeline_process import PipelineProcess
from queenspark.settings import Settings
from queenspark.store.functions import SEARCH_PATH

MESSAGES = 2_000_000
KEYS = 5_000
DRAINS = 3
SPAN_SECONDS = 1_200
"""Over how long a time the messages of the backlog are spread."""

FILL = """
INSERT INTO queenspark.messages (txid, id, partition_id, created_at, queue_id, transaction_id, payload)
SELECT current_txid(), %(first)s + n, p.id,
       clock_timestamp() - make_interval(secs => %(span)s * (1 - (%(first)s + n) / %(total)s::float8) + 60),
       p.queue_id, 't' || (%(first)s + n), {payload}
FROM generate_series(0, %(count)s - 1) n
JOIN LATERAL (
    SELECT id, queue_id FROM queenspark.partitions
    WHERE queue_id = %(queue_id)s AND name = 'k' || ((%(first)s + n)::bigint * 7919 %% %(keys)s)
) p ON true
"""


def fill(machine: Machine, queue: str, messages: int, keys: int, payload: str = """'{"n": 1}'""") -> None:
    """Put messages of the past into a queue; the payload is an expression of SQL."""
    post(machine, "/api/v1/configure", {"queue": queue})
    with psycopg.connect(machine.database_url, autocommit=True, options=SEARCH_PATH) as connection:
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
            connection.execute(FILL.replace("{payload}", payload), params)
        # As if the messages had been pushed at their times, with the clock samples of those times.
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
            fill(machine, "warm-up", 400_000, KEYS)
            wait_for_records(machine, define(machine, "warm-up", "warm-up"), 400_000)
            yield pipeline
        finally:
            pipeline.stop()


def wait_until(
    machine: Machine, statement: str, what: str, *, stream: int | None = None, within: float = 300.0
) -> float:
    """Wait until a statement (optionally about a stream) is true; return the time."""
    deadline = time.monotonic() + within
    with psycopg.connect(machine.database_url, autocommit=True, options=SEARCH_PATH) as connection:
        while time.monotonic() < deadline:
            row = connection.execute(statement, {"stream": stream}).fetchone()
            if row is not None and row[0]:
                return time.monotonic()
            time.sleep(0.02)
    raise RuntimeError(f"{what} did not happen within {within} s")


def wait_for_records(machine: Machine, stream: int, count: int) -> float:
    """Wait until a stream has read this many records; return the time."""
    statement = (
        f"SELECT coalesce(sum(records), 0) >= {count:d} FROM queenspark.stream_stats"
        " WHERE stream_id = %(stream)s"
    )
    return wait_until(machine, statement, f"the reading of {count} records", stream=stream)


def wait_for_silence(machine: Machine) -> None:
    """Wait until there has been no batch for three seconds."""
    statement = "SELECT max(updated_at) < clock_timestamp() - interval '3 seconds' FROM queenspark.progress"
    wait_until(machine, statement, "silence")


def drain(machine: Machine, messages: int) -> list[float]:
    """Messages a second while new streams catch up with a backlog, one after the other."""
    fill(machine, "backlog", messages, KEYS)
    rates = []
    for number in range(DRAINS):
        machine.settle()
        began = time.monotonic()
        stream = define(machine, f"backlog-{number}", "backlog")
        rates.append(messages / (wait_for_records(machine, stream, messages) - began))
    return sorted(rates)


def sealed(machine: Machine, stream: str, keys: int, messages: int) -> None:
    """Let the pipeline seal windows of this many keys."""
    fill(machine, stream, messages, keys)
    number = define(machine, stream, stream)
    wait_for_records(machine, number, messages)
    statement = "SELECT sum(open_windows) = 0 FROM queenspark.stream_stats WHERE stream_id = %(stream)s"
    wait_until(machine, statement, "the sealing of all windows", stream=number)


def deliveries(machine: Machine, stream: str, consumers: int, seconds: float, *, at_once: int = 1) -> float:
    """Windows per second that consumers of one group poll and ack, `at_once` per poll."""
    machine.settle()
    arguments = (stream, f"bench-{at_once}", at_once)
    report = run_wrk(
        "windows", machine.url, *arguments, threads=consumers, connections=consumers, seconds=seconds
    )
    if report["failed"] or not report["acked"]:
        raise WrkError(f"not everything was acked: {report}")
    return float(report["acked"]) / float(report["seconds"])


def delays(machine: Machine, seconds: float, *, streams: int = 10, rate: int = 2_000) -> list[float]:
    """Seconds from the end of each window, and its grace, to its delivery."""
    grace = 0.5
    names = [f"delay-{number}" for number in range(streams)]
    for name in names:
        post(machine, "/api/v1/configure", {"queue": name})
        define(machine, name, name, window_duration_ms=2_000, window_grace_period_ms=int(grace * 1000))
    found: list[float] = []
    over = time.time() + seconds
    workers = [threading.Thread(target=_produce, args=(machine, names, rate, over))]
    workers += [
        threading.Thread(target=_consume, args=(machine, name, grace, over + 8, found)) for name in names
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sorted(found)


def _produce(machine: Machine, queues: list[str], rate: int, until: float) -> None:
    batch = 100
    at = time.time()
    with httpx2.Client(base_url=machine.url, timeout=30.0) as client:
        for number in count():
            if at > until:
                return
            items = [
                {"queue": queues[(number + n) % len(queues)], "partition": f"k{n % 20}", "payload": n}
                for n in range(batch)
            ]
            client.post("/api/v1/push", json={"items": items}).raise_for_status()
            at += batch / rate
            time.sleep(max(0.0, at - time.time()))


def _consume(machine: Machine, stream: str, grace: float, until: float, found: list[float]) -> None:
    body = {
        "streamName": stream,
        "consumerGroup": "bench",
        "timeout": 2_000,
        "maxWindows": 50,
        "maxMessages": 1,
    }
    with httpx2.Client(base_url=machine.url, timeout=30.0) as client:
        while time.time() < until:
            response = client.post("/api/v1/stream/poll", json=body)
            now = time.time()
            if response.status_code == httpx2.codes.NO_CONTENT:
                continue
            for window in response.raise_for_status().json()["windows"]:
                found.append(now - datetime.fromisoformat(window["end"]).timestamp() - grace)
                ack = {"leaseId": window["leaseId"], "success": True}
                client.post("/api/v1/stream/ack", json=ack).raise_for_status()


def idle_cores(machine: Machine, pipeline: PipelineProcess, seconds: float) -> float:
    """Cores that the idle pipeline uses."""
    before = tree_seconds(pipeline.pid)
    time.sleep(seconds)
    return (tree_seconds(pipeline.pid) - before) / seconds


def plain_spark(machine: Machine) -> float:
    """Messages a second of a plain query of Spark that counts the same windows, in a process of its own."""
    script = [sys.executable, "-m", "bench.plain_spark", machine.database_url, "backlog"]
    done = subprocess.run(script, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def main(
    messages: Annotated[int, typer.Option(help="Size of the backlog.")] = MESSAGES,
    seconds: Annotated[float, typer.Option(help="How long each measurement lasts.")] = 20.0,
) -> None:
    """Measure and print."""
    sheet = Sheet("Streams on this machine, with PostgreSQL, the broker and Spark on the same cores")
    row = sheet.row
    with running_machine() as machine:
        with sheet.progress.status("measuring streams"), running_pipeline(machine) as pipeline:
            rates = drain(machine, messages)
            found = delays(machine, seconds)
            middle, most = found[len(found) // 2], found[int(len(found) * 0.99)]
            row("from end and grace to delivery, p50", f"{middle:.2f} s", "", "1.5 s")
            row("from end and grace to delivery, p99", f"{most:.2f} s", "", "3 s")
            sealed(machine, "keys", 10_000, 200_000)
            taken = deliveries(machine, "keys", 8, seconds, at_once=10)
            alone = deliveries(machine, "keys", 8, seconds)
            what = "windows polled and acked, 8 consumers, 10,000 keys, up to 10 at once"
            row(what, f"{taken:,.0f} /s", f"one by one: {alone:,.0f} /s", "2,000 /s")
            sealed(machine, "few", 100, 100_000)
            sealed(machine, "many", 100_000, 100_000)
            few, many = (1000 / deliveries(machine, name, 1, 5.0) for name in ("few", "many"))
            row("a poll and an ack with 100,000 keys", f"{many:.2f} ms", f"100 keys: {few:.2f} ms", "twice")
            wait_for_silence(machine)
            idle = 100 * idle_cores(machine, pipeline, 15.0)
            row("the idle pipeline", f"{idle:.1f} % of a core", "", "5 %")
        plain = plain_spark(machine)
        what = f"draining {messages:,} messages, {KEYS:,} keys"
        measured = f"{rates[DRAINS // 2]:,.0f} /s ({rates[0]:,.0f} to {rates[-1]:,.0f})"
        row(what, measured, f"plain Spark: {plain:,.0f} /s", "375,000 /s")
    sheet.show()


if __name__ == "__main__":
    typer.run(main)
