"""A queue with a group, a stream with a group, and a job, which must continue after a restore."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.broker_process import Broker
from tests.system.load import wait_until
from tests.system.pipeline_process import PipelineProcess
from tests.system.system import Stream, System, as_rows, oracle_rows
from tests.wire.api import Api
from tests.wire.sql import Sql

FAR_AWAY = 4 * 10**15
KEYS = 3


@contextmanager
def running(url: str, folder: Path, checkpoint: Path) -> Iterator[System]:
    """Run a broker and a pipeline on a server."""
    folder.mkdir(parents=True, exist_ok=True)
    broker = Broker(url, folder / "broker.log")
    pipeline = PipelineProcess(url, folder / "pipeline", spark_checkpoint=checkpoint)
    pipeline.start()
    try:
        with Api(broker.url, url) as api:
            yield System(api, url, pipeline)
    finally:
        pipeline.kill()
        broker.kill()


class Scene:
    """The messages pushed and consumed, and the windows consumed so far."""

    def __init__(self, system: System) -> None:
        self.pushed: list[int] = []
        self.taken: list[int] = []
        self.windows: list[str] = []
        system.api.configure("q", leaseTime=2)
        self.stream: Stream = system.define(
            "tumbling", sources=["q"], grace_ms=0, window_duration_ms=500, window_lease_timeout_ms=2000
        )
        sql = Sql(system.api)
        sql("create stream s (n bigint) with (queue = 'q')")
        sql(
            "create stream sums as select _partition as p, count(*) as c, sum(n) as t from s"
            " group by _partition"
        )

    def push(self, system: System, count: int) -> list[int]:
        """Push `count` more messages."""
        first = len(self.pushed)
        numbers = list(range(first, first + count))
        for n in numbers:
            system.api.push("q", {"n": n}, partition=f"k{n % KEYS}")
        self.pushed += numbers
        return numbers

    def take(self, system: System, count: int) -> list[int]:
        """Pop and ack `count` messages."""
        found = [message["data"]["n"] for message in system.api.drain("q", count, consumerGroup="g")]
        self.taken += found
        return found

    def take_windows(self, system: System) -> list[str]:
        """Poll and ack all windows of the pushed messages."""
        found: list[str] = []

        def all_taken() -> bool:
            while (window := system.poll(self.stream, "w", timeout=500)) is not None:
                system.ack(window)
                found.append(window["id"])
            expected = {row.window_id for row in self.expected(system)}
            return expected <= {*self.windows, *found}

        assert wait_until(all_taken, within=300), (system.pipeline.log(), self.expected(system))
        self.windows += found
        return found

    def expected(self, system: System) -> list[Any]:
        """Return the windows that the oracle computes from the log."""
        return system.expected(self.stream, system.records(self.stream), FAR_AWAY)

    def check(self, system: System) -> None:
        """Check that windows and rows match the log exactly."""
        assert as_rows(system.sealed(self.stream)) == oracle_rows(self.expected(system))
        records = system.run(
            "SELECT p.name, (m.payload::jsonb ->> 'n')::bigint FROM queenspark.messages m"
            " JOIN queenspark.partitions p ON p.id = m.partition_id"
            " JOIN queenspark.queues q ON q.id = m.queue_id WHERE q.name = 'q' ORDER BY m.txid, m.id"
        )
        wanted, totals = [], dict.fromkeys((key for key, _ in records), (0, 0))
        for key, n in records:
            count, total = totals[key]
            totals[key] = (count + 1, total + n)
            wanted.append((key, *totals[key]))

        def rows() -> list[tuple[Any, ...]]:
            return system.run(
                "SELECT p.name, (m.payload::jsonb ->> 'c')::bigint, (m.payload::jsonb ->> 't')::bigint"
                " FROM queenspark.messages m JOIN queenspark.partitions p ON p.id = m.partition_id"
                " JOIN queenspark.queues q ON q.id = m.queue_id WHERE q.name = 'sums'"
            )

        wait_until(lambda: len(rows()) >= len(wanted), within=60)
        assert sorted(rows()) == sorted(wanted)
