"""`make soak`: runs a steady load with short retention and checks whether anything grows or slows down.

Samples are taken every ten seconds: the memory of each process, the size and dead rows of tables, the size of
the checkpoint, and the latency of pushes, pops and window delivery. The report compares the first ten minutes
with the last ten. It fails if a request failed, or if the load was not reached.
"""

import json
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import httpx2
import psycopg
import typer

from bench.cpu import PARENT, all_stats
from bench.machine import Machine, running_machine
from bench.streams import define, post
from bench.svg import chart
from queenspark.cli.pipeline_process import PipelineProcess
from queenspark.settings import Settings

RETENTION_SECONDS = 120
SAMPLE_SECONDS = 10.0
TELL_SECONDS = 60.0
END_MINUTES = 10.0
WARM_UP = 24.0
"""Seconds of warm-up per compared minute; for ten minutes, retention has started to delete by then."""
BATCH = 100
KEYS = 200
TURN_SECONDS = 5.0
"""One half of the keys is active for this long, then the other: sessions end."""
GRACE_MS = 500
PAUSE_SECONDS = 0.05
"""Between polls of an empty queue, and after a failed request."""
MOST_FAILURES = 20
LEAST_LOAD = 0.98
"""Fraction of the requested messages that must have been pushed, and taken."""
GROWTH = 1.2
"""Figures that grow by more than this are marked."""
QUEUES = ("clicks", "orders")
STREAMS: dict[str, tuple[str, dict[str, Any]]] = {
    "tumbling": ("clicks", {"window_duration_ms": 5_000}),
    "session": ("orders", {"window_type": "session", "window_duration_ms": None, "window_gap_ms": 2_000}),
}
JOBS = (
    "create stream s (n bigint, user string) with (queue = 'clicks')",
    "create stream kept as select user, n from s where n % 10 = 0"
    " with (partition_by = 'user', retention = '2m')",
    "create stream totals as select user, count(*) as c, sum(n) as t from s group by user"
    " window tumbling(10s) with (retention = '2m')",
)
TABLES = """SELECT c.relname, pg_table_size(c.oid), pg_indexes_size(c.oid), s.n_live_tup, s.n_dead_tup
FROM pg_class c JOIN pg_stat_user_tables s ON s.relid = c.oid
WHERE s.schemaname = 'queenspark' AND pg_total_relation_size(c.oid) > 1000000"""
Samples = list[dict[str, float]]


class Times:
    """Latencies since the last sample, by kind."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seconds: dict[str, list[float]] = defaultdict(list)

    def add(self, kind: str, *seconds: float) -> None:
        """Add latencies."""
        with self._lock:
            self._seconds[kind] += seconds

    def take(self) -> dict[str, float]:
        """Return the 99th percentile of each kind in milliseconds, and reset."""
        with self._lock:
            taken, self._seconds = self._seconds, defaultdict(list)
        return {f"p99 {kind}, ms": 1000 * percentile(found, 0.99) for kind, found in taken.items() if found}


def percentile(values: list[float], share: float) -> float:
    """Return the percentile of the values; `share` is between 0 and 1."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


class Load:
    """Producers and consumers in threads."""

    def __init__(self, machine: Machine, rate: float, times: Times) -> None:
        self._machine = machine
        self._rate = rate
        self._times = times
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self.pushed = self.popped = self.windows = 0
        self.failures: list[str] = []

    def start(self) -> None:
        """Start all threads."""
        for queue in QUEUES:
            self._run(lambda client, queue=queue: self._produce(client, queue))  # type: ignore[misc]
            self._run(lambda client, queue=queue: self._consume(client, queue))  # type: ignore[misc]
        for stream in STREAMS:
            self._run(lambda client, stream=stream: self._take_windows(client, stream))  # type: ignore[misc]

    def stop(self) -> None:
        """Stop all threads."""
        self._stop.set()
        for thread in self._threads:
            thread.join(60)

    def _run(self, work: Callable[[httpx2.Client], None]) -> None:
        def repeated() -> None:
            with httpx2.Client(base_url=self._machine.url, timeout=60.0) as client:
                while not self._stop.is_set() and len(self.failures) < MOST_FAILURES:
                    try:
                        work(client)
                    except (httpx2.HTTPError, AssertionError) as error:
                        self.failures.append(f"{time.strftime('%H:%M:%S')} {error!r}")
                        time.sleep(PAUSE_SECONDS)

        self._threads.append(threading.Thread(target=repeated, daemon=True))
        self._threads[-1].start()

    def _produce(self, client: httpx2.Client, queue: str) -> None:
        at = time.monotonic()
        for number in count(0, BATCH):
            if self._stop.is_set():
                return
            turn = int(time.monotonic() / TURN_SECONDS) % 2
            items = [
                {"queue": queue, "partition": f"k{key}", "payload": {"n": n, "user": f"u{key}"}}
                for n in range(number, number + BATCH)
                for key in [n * 2 % KEYS + turn]
            ]
            began = time.monotonic()
            client.post("/api/v1/push", json={"items": items}).raise_for_status()
            self._times.add("push", time.monotonic() - began)
            self.pushed += BATCH
            at += BATCH / (self._rate / len(QUEUES))
            time.sleep(max(0.0, at - time.monotonic()))

    def _consume(self, client: httpx2.Client, queue: str) -> None:
        query: dict[str, str | int] = {"consumerGroup": "soak", "batch": 500, "partitions": KEYS}
        while not self._stop.is_set():
            began = time.monotonic()
            response = client.get(f"/api/v1/pop/queue/{queue}", params=query).raise_for_status()
            self._times.add("pop", time.monotonic() - began)
            if response.status_code == httpx2.codes.NO_CONTENT:
                time.sleep(PAUSE_SECONDS)
                continue
            messages = response.json()["messages"]
            names = ("transactionId", "partitionId", "leaseId")
            acks = [{**{name: each[name] for name in names}, "status": "completed"} for each in messages]
            body = {"consumerGroup": "soak", "acknowledgments": acks}
            results = client.post("/api/v1/ack/batch", json=body).raise_for_status().json()
            assert all(each["success"] for each in results)
            self.popped += len(messages)

    def _take_windows(self, client: httpx2.Client, stream: str) -> None:
        body = {
            "streamName": stream, "consumerGroup": "soak", "timeout": 2000, "maxWindows": 100,
            "messages": False,
        }  # fmt: skip
        while not self._stop.is_set():
            response = client.post("/api/v1/stream/poll", json=body).raise_for_status()
            now = time.time()
            if response.status_code == httpx2.codes.NO_CONTENT:
                continue
            windows = response.json()["windows"]
            due = [datetime.fromisoformat(each["end"]).timestamp() + GRACE_MS / 1000 for each in windows]
            self._times.add("window delivery", *(now - each for each in due))
            names = ("transactionId", "partitionId", "leaseId")
            acks = [{**{name: each[name] for name in names}, "status": "completed"} for each in windows]
            ack_body = {"consumerGroup": "soak", "acknowledgments": acks}
            client.post("/api/v1/ack/batch", json=ack_body).raise_for_status()
            self.windows += len(windows)


def memory(machine: Machine, pipeline: int) -> dict[str, float]:
    """Return the memory of the broker, of PostgreSQL, and of the pipeline by program, in megabytes.

    For programs with many processes, also that of the largest one.
    """
    stats = all_stats()
    found: dict[str, float] = defaultdict(float)
    parts = (("broker", machine.broker_pid), ("PostgreSQL", machine.postgres_pid), ("pipeline", pipeline))
    for name, root in parts:
        todo = [root]
        while todo:
            pid = todo.pop()
            todo += [child for child, fields in stats.items() if int(fields[PARENT]) == pid]
            kind = name
            if name == "pipeline":
                kind = (
                    "JVM"
                    if _program(pid) == "java"
                    else "pipeline driver"
                    if pid == root
                    else "Python workers"
                )
            size = _own_megabytes(pid)
            found[f"memory {kind}, MB"] += size
            if kind in ("PostgreSQL", "Python workers"):
                largest = f"memory {kind}, largest, MB"
                found[largest] = max(found[largest], size)
    return found


def _program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _own_megabytes(pid: int) -> float:
    """Return the proportional set size (PSS) of a process."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def tables(machine: Machine) -> dict[str, float]:
    """Return the total size of the larger tables in megabytes, and live and dead rows of the busiest."""
    with psycopg.connect(machine.database_url, autocommit=True) as connection:
        rows = connection.execute(TABLES).fetchall()
    found: dict[str, float] = {
        "tables, MB": sum(row[1] for row in rows) / 1e6,
        "indexes, MB": sum(row[2] for row in rows) / 1e6,
        "dead rows of all tables": sum(row[4] for row in rows),
    }
    for name, _, _, live, dead in rows:
        if name in ("messages", "places"):
            found |= {f"{name}, live rows": live, f"{name}, dead rows": dead}
    return found


def folder_megabytes(folder: Path) -> float:
    """Return the size of all files below a folder; files deleted in the meantime are skipped."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            continue
    return total / 1e6


def main(
    minutes: Annotated[float, typer.Option(help="Duration in minutes.")] = 60.0,
    rate: Annotated[float, typer.Option(help="Messages a second.")] = 3_000.0,
    report: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Save all samples here.")
    ] = None,
    graph: Annotated[Path | None, typer.Option("--svg", metavar="FILE", help="Draw them here.")] = None,
) -> None:
    """Run, sample, and compare the end with the beginning."""
    samples: Samples = []
    with running_machine() as machine, tempfile.TemporaryDirectory(prefix="queenspark-soak-") as folder:
        pipeline = PipelineProcess(Settings(data_dir=Path(folder)), machine.database_url)
        pipeline.spawn()
        times = Times()
        load = Load(machine, rate, times)
        try:
            set_up(machine)
            load.start()
            sample(machine, pipeline.pid, Path(folder) / "checkpoint", load, times, minutes * 60, samples)
        finally:
            load.stop()
            pipeline.stop()
    wanted = samples[-1]["seconds"] * rate
    tell(
        f"{load.pushed:,} messages pushed ({load.pushed / wanted:.0%} of the rate), {load.popped:,} taken,"
        f" {load.windows:,} windows taken"
    )
    for failure in load.failures:
        tell(f"FAILED: {failure}")
    compare(samples, min(END_MINUTES, minutes / 3))
    if report is not None:
        report.write_text(json.dumps(samples, indent=1) + "\n")
    if graph is not None:
        graph.write_text(chart(samples, ("memory", "tables", "indexes", "checkpoint", "p99", "messages")))
    is_reached = min(load.pushed, load.popped) >= LEAST_LOAD * wanted
    raise typer.Exit(0 if is_reached and not load.failures else 1)


def set_up(machine: Machine) -> None:
    """Define queues, streams and jobs, all with short retention."""
    for queue in QUEUES:
        options = {"retentionSeconds": RETENTION_SECONDS}
        post(machine, "/api/v1/configure", {"queue": queue, "options": options})
    for name, (queue, fields) in STREAMS.items():
        wanted = {
            "window_grace_period_ms": GRACE_MS,
            "window_retention_ms": RETENTION_SECONDS * 1000,
            **fields,
        }
        define(machine, name, queue, **wanted)
    for statement in JOBS:
        post(machine, "/api/v1/sql", {"sql": statement})


def sample(
    machine: Machine,
    pipeline: int,
    checkpoint: Path,
    load: Load,
    times: Times,
    seconds: float,
    found: Samples,
) -> None:
    """Take a sample every ten seconds."""
    began = told = time.monotonic()
    while len(load.failures) < MOST_FAILURES and time.monotonic() < began + seconds:
        time.sleep(SAMPLE_SECONDS)
        one = {"seconds": round(time.monotonic() - began, 1), "pushed": float(load.pushed)}
        one |= {"taken": float(load.popped), "windows": float(load.windows), **times.take()}
        one |= memory(machine, pipeline) | tables(machine)
        one["checkpoint, MB"] = folder_megabytes(checkpoint)
        found.append({name: round(value, 2) for name, value in one.items()})
        if time.monotonic() > told + TELL_SECONDS:
            told = time.monotonic()
            tell(", ".join(f"{name} {value:,.0f}" for name, value in found[-1].items()))


def compare(samples: Samples, minutes: float) -> None:
    """Print the median of each figure in the first minutes after the warm-up and in the last minutes."""
    first = samples[0]["seconds"] + minutes * WARM_UP
    early = [each for each in samples if first <= each["seconds"] < first + minutes * 60]
    late = [each for each in samples if each["seconds"] > samples[-1]["seconds"] - minutes * 60]
    tell(f"median of the first {minutes:g} minutes after the warm-up, of the last, and the ratio:")
    for name in samples[-1]:
        if name not in ("seconds", "pushed", "taken", "windows"):
            before = percentile([each[name] for each in early if name in each] or [0.0], 0.5)
            after = percentile([each[name] for each in late if name in each] or [0.0], 0.5)
            ratio = f"{after / before:.2f}" if before else "-"
            mark = "  more" if after > GROWTH * before else ""
            tell(f"{name:34} {before:14,.1f} {after:14,.1f} {ratio:>8}{mark}")


def tell(line: str) -> None:
    """Print a line and flush, so that long runs can be followed."""
    print(f"{time.strftime('%H:%M:%S')}  {line}", flush=True)


if __name__ == "__main__":
    typer.run(main)
