"""A pipeline that reads less than arrives says so, and says so again when it has caught up."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker_process import Broker
from tests.conftest import warm_up
from tests.postgres_servers import PostgresServer
from tests.system.pipeline_process import PipelineProcess
from tests.system.system import System
from tests.wire.api import Api
from tests.wire.deadline import eventually

pytestmark = [pytest.mark.long, pytest.mark.timeout(480)]

MESSAGES = 600
PATIENCE = 120.0


@pytest.fixture
def throttled(system_postgres: PostgresServer, tmp_path: Path) -> Iterator[System]:
    """A broker and a pipeline whose batches have 50 messages at most."""
    with system_postgres.database() as url:
        broker = Broker(url, tmp_path / "broker.log", stats_interval_seconds=0.2)
        pipeline = PipelineProcess(url, tmp_path / "pipeline", spark_max_rows=50)
        pipeline.start()
        try:
            pipeline.wait_until_leading()
            with Api(broker.url) as api:
                system = System(api, url, pipeline)
                warm_up(system)
                yield system
        finally:
            pipeline.stop()
            broker.stop()


def test_backpressure_rises_above_1_and_falls(throttled: System) -> None:
    api = throttled.api
    stream = throttled.define(
        "tumbling", window_duration_ms=60_000, event_time="data.at", late="warn", grace_ms=0
    )

    def backpressure() -> tuple[float, float]:
        found = api.read("/api/v1/resources/streams/stats")
        (mine,) = (each for each in found["byStream"] if each["name"] == stream.name)
        return found["pipeline"]["query"]["backpressure"], mine["rates"]["backpressure"]

    def is_read() -> bool:
        progress = api.read(f"/api/v1/resources/streams/{stream.name}")["progress"]
        return bool(progress["records"] == MESSAGES)

    # The first record is by far the newest: all others are late.
    times_ms = [3_600_000, *[0] * (MESSAGES - 1)]
    for start in range(0, MESSAGES, 100):
        api.push_items(
            [{"queue": stream.queues[0], "payload": {"at": at}} for at in times_ms[start : start + 100]]
        )
    eventually(lambda: min(backpressure()) > 1, PATIENCE)
    eventually(is_read, PATIENCE)
    eventually(lambda: max(backpressure()) <= 1, PATIENCE)
    buckets = api.read("/api/v1/resources/streams/stats")["pipeline"]["query"]["buckets"]
    times = [bucket["batchSecondsHistogram"] for bucket in buckets.values()]
    assert all(sum(each["counts"]) >= MESSAGES / 50 and each["sum"] > 0 for each in times)
    lines = [
        line for line in throttled.pipeline.log().splitlines() if f"stream {stream.name} in tests" in line
    ]
    told = [int(line.partition(" late records")[0].rpartition(" ")[2]) for line in lines]
    assert sum(told) == MESSAGES - 1
    assert len(told) < MESSAGES / 10, "a line has many"
