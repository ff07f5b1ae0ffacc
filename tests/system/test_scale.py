"""Many streams in one query."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.broker_process import Broker
from tests.postgres_servers import PostgresServer
from tests.processes import arguments_of, descendants
from tests.system.load import Producers, sealed_counts, wait_until
from tests.system.pipeline_process import PipelineProcess
from tests.system.system import System
from tests.wire.api import Api

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

SECOND = 1_000_000
GIB = 1024**3
KEYS = 8
SHAPES: dict[str, dict[str, Any]] = {
    "tumbling": {"window_duration_ms": 5000},
    "sliding": {"window_duration_ms": 10_000, "window_slide_ms": 5000},
    "session": {"window_gap_ms": 1500},
    "count": {"window_size_count": 6},
}
WINDOW = ["stream", "key", "start", "end", "count", "first_txid", "first_id", "last_txid", "last_id"]


@pytest.fixture
def system(system_postgres: PostgresServer, tmp_path: Path) -> Iterator[System]:
    """A system of its own."""
    with system_postgres.database() as url:
        broker = Broker(url, tmp_path / "broker.log")
        pipeline = PipelineProcess(url, tmp_path / "pipeline")
        pipeline.start()
        with Api(broker.url) as api:
            yield System(api, url, pipeline)
        pipeline.kill()
        broker.stop()


def test_many_streams_share_one_query(system: System, full_size: bool) -> None:
    """All windows of all streams are right; memory stays within bounds."""
    queues, each, messages = (100, 10, 100_000) if full_size else (20, 5, 3_000)
    names = [f"queue {number}" for number in range(queues)]
    system.pipeline.wait_until_leading()
    times: dict[str, float] = {}
    begin = time.monotonic()
    streams = [
        (system.define(kind, sources=[name], name=f"{name} stream {n}", **SHAPES[kind]).id, name, kind)
        for name in names
        for n, kind in ((n, list(SHAPES)[n % len(SHAPES)]) for n in range(each))
    ]
    times["define"] = time.monotonic() - begin
    begin = time.monotonic()
    load: dict[str, Any] = {"messages": messages, "per_second": 1_000_000, "keys": KEYS, "seed": 1}
    with Producers(system.api.url, names, **load) as producers:
        producers.finish()
    times["push"] = time.monotonic() - begin
    begin = time.monotonic()
    expected = expected_windows(system, streams)
    wanted = expected.height
    wait_until(lambda: sum(sealed_counts(system).values()) >= wanted, within=900, every=0.5)
    times["windows"] = time.monotonic() - begin
    processes = [system.pipeline.process.pid, *descendants(system.pipeline.process.pid)]
    sources = [pid for pid in processes if "python_streaming_source_runner" in " ".join(arguments_of(pid))]
    memory = resident(system.pipeline.process.pid) + resident(system.pipeline.java)
    sys.stderr.write(f"\n{len(streams)} streams, {wanted} windows, {memory / GIB:.2f} GiB, {times}\n")
    found = sealed_windows(system)
    assert found.height == wanted, system.pipeline.log()
    assert found.sort(WINDOW).equals(expected.sort(WINDOW))
    assert len(sources) == 1
    assert memory < 4 * GIB


def resident(pid: int) -> int:
    """Bytes of memory that a process holds."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("VmRSS:")]
    return int(line.split()[1]) * 1024


def sealed_windows(system: System) -> pl.DataFrame:
    """The content of the window queues."""
    rows = system.run(
        "SELECT s.id, p ->> 'key', (p ->> 'start')::bigint, (p ->> 'end')::bigint, (p ->> 'count')::bigint,"
        " (p #>> '{sources,0,1}')::bigint, (p #>> '{sources,0,2}')::bigint,"
        " (p #>> '{sources,0,3}')::bigint, (p #>> '{sources,0,4}')::bigint"
        " FROM queenspark.messages m JOIN queenspark.streams s ON s.queue_id = m.queue_id"
        " CROSS JOIN LATERAL (SELECT m.payload::jsonb AS p) x"
    )
    return pl.DataFrame(rows, schema=_schema(), orient="row")


def expected_windows(system: System, streams: list[tuple[int, str, str]]) -> pl.DataFrame:
    """The same by plain grouping of the messages."""
    rows = system.run(
        "SELECT q.name, p.name, m.txid, m.id, (extract(epoch FROM m.created_at) * 1000000)::bigint"
        " FROM queenspark.messages m JOIN queenspark.partitions p ON p.id = m.partition_id"
        " JOIN queenspark.queues q ON q.id = m.queue_id WHERE q.name LIKE 'queue %%' ORDER BY m.txid, m.id",
    )
    schema = {"queue": pl.String, "key": pl.String, "txid": pl.Int64, "id": pl.Int64, "t": pl.Int64}
    log = pl.DataFrame(rows, schema=schema, orient="row")
    twice = pl.concat(log.with_columns(start=on_grid(5) - back * 5 * SECOND) for back in (0, 1))
    by_kind = {
        "tumbling": grouped(log.with_columns(start=on_grid(5)), 5),
        "sliding": grouped(twice, 10),
        "session": sessions(log),
        "count": counted(log),
    }
    found = []
    for kind, windows in by_kind.items():
        of_kind = [(id_, queue) for id_, queue, kind_ in streams if kind_ == kind]
        frame = pl.DataFrame(of_kind, schema={"stream": pl.Int64, "queue": pl.String}, orient="row")
        found.append(frame.join(windows, on="queue").select(WINDOW))
    return pl.concat(found)


def on_grid(seconds: int) -> pl.Expr:
    """The start of the last window that contains a time."""
    return pl.col("t") // (seconds * SECOND) * (seconds * SECOND)


def grouped(log: pl.DataFrame, seconds: int) -> pl.DataFrame:
    """Windows of this many seconds by their start."""
    windows = log.group_by("queue", "key", "start").agg(*ends())
    return windows.with_columns(end=pl.col("start") + seconds * SECOND)


def sessions(log: pl.DataFrame) -> pl.DataFrame:
    """Sessions with a gap of 1.5 seconds."""
    log = log.sort("t", maintain_order=True)
    gap = 1_500_000
    is_new = (pl.col("t").diff().over("queue", "key") >= gap).fill_null(True)
    log = log.with_columns(session=is_new.cast(pl.Int64).cum_sum().over("queue", "key"))
    windows = log.group_by("queue", "key", "session").agg(
        *ends(), start=pl.col("t").min(), end=pl.col("t").max() + gap
    )
    return windows.drop("session")


def counted(log: pl.DataFrame) -> pl.DataFrame:
    """Full windows of six."""
    log = log.with_columns(number=pl.int_range(pl.len()).over("queue", "key") // 6)
    windows = log.group_by("queue", "key", "number").agg(
        *ends(), start=pl.col("t").sort_by("txid", "id").first(), end=pl.col("t").sort_by("txid", "id").last()
    )
    return windows.filter(pl.col("count") == 6).drop("number")


def ends() -> list[pl.Expr]:
    """Count, first and last position."""
    found = [pl.len().cast(pl.Int64).alias("count")]
    for name in ("txid", "id"):
        in_order = pl.col(name).sort_by("txid", "id")
        found += [in_order.first().alias(f"first_{name}"), in_order.last().alias(f"last_{name}")]
    return found


def _schema() -> dict[str, Any]:
    return {name: pl.String if name == "key" else pl.Int64 for name in WINDOW}
