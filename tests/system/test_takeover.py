"""One pipeline leads, another one stands by and takes over."""

import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.broker_process import Broker
from tests.postgres_servers import PostgresServer
from tests.processes import descendants
from tests.system.load import wait_until
from tests.system.pipeline_process import PipelineProcess, send
from tests.system.system import System, as_rows, oracle_rows
from tests.wire.api import Api

pytestmark = [pytest.mark.long, pytest.mark.crash, pytest.mark.timeout(300)]

FAR_AWAY = 4 * 10**15  # microseconds: no window is open then


class Pair:
    """Two pipelines with one checkpoint, and a stream."""

    def __init__(self, system: System, folder: Path) -> None:
        self.system = system
        self.stream = system.define("tumbling", grace_ms=0, window_duration_ms=500)
        self._folder = folder
        self._pipelines: list[PipelineProcess] = []
        self._pushed = 0

    def ready(self) -> tuple[PipelineProcess, PipelineProcess]:
        """The leader and the standbys; missing ones are started."""
        leader = self.leader(of=2)
        (other,) = [each for each in self._pipelines if each is not leader]
        assert wait_until(lambda: "ready to take over" in other.log(), within=60), other.log()
        self.seal()
        return leader, other

    def leader(self, of: int = 1) -> PipelineProcess:
        """The leader, among at least this many pipelines."""
        self._pipelines = [each for each in self._pipelines if each.process.poll() is None]
        while len(self._pipelines) < of:
            folder = self._folder / f"pipeline-{time.monotonic_ns()}"
            checkpoint = self._folder / "checkpoint"
            started = PipelineProcess(self.system.database_url, folder, spark_checkpoint=checkpoint)
            started.start()
            self._pipelines.append(started)
        wait_until(lambda: any(each.leads() for each in self._pipelines), within=120)
        (leader,) = [each for each in self._pipelines if each.leads()]
        return leader

    def push(self) -> None:
        """Push one more message."""
        self.system.api.push(self.stream.queues[0], self._pushed, partition="k")
        self._pushed += 1

    def seal(self, within: float = 60.0) -> float:
        """Push, and wait until the window is delivered; return the seconds that took."""
        begin = time.monotonic()
        self.push()
        mine = self._pushed - 1
        seen: list[int] = []
        while mine not in seen:
            assert time.monotonic() < begin + within, self.logs()
            if (window := self.system.poll(self.stream, timeout=1000)) is not None:
                self.system.ack(window)
                seen += [message["data"] for message in window["messages"]]
        return time.monotonic() - begin

    def logs(self) -> str:
        """The logs of the pipelines."""
        return "\n\n".join(each.log() for each in self._pipelines)

    def check(self) -> None:
        """The windows are those of the oracle."""
        expected = self.system.expected(self.stream, self.system.records(self.stream), FAR_AWAY)
        assert as_rows(self.system.wait_for(self.stream, len(expected))) == oracle_rows(expected)

    def end(self) -> None:
        """Kill the remaining ones."""
        for each in self._pipelines:
            each.kill()


@pytest.fixture(scope="module")
def pair(system_postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """A pair for all tests here."""
    folder = tmp_path_factory.mktemp("pair")
    with system_postgres.database() as url:
        broker = Broker(url, folder / "broker.log")
        with Api(broker.url) as api:
            pair = Pair(System(api, url, PipelineProcess(url, folder / "none")), folder)
            yield pair
            pair.end()
        broker.stop()


def test_a_frozen_leader_cannot_write_any_more(pair: Pair) -> None:
    """It freezes during a push; when it thaws, another pipeline leads, and it stands by."""
    leader, standby = pair.ready()
    with psycopg.connect(pair.system.database_url) as connection:
        pair.push()
        connection.execute("SELECT 1 FROM queenspark.progress WHERE bucket = 1 FOR UPDATE")
        assert wait_until(lambda: is_waiting(pair.system), within=30), leader.log()
        pids = [leader.process.pid, *descendants(leader.process.pid)]
        send(signal.SIGSTOP, pids)
    begin = time.monotonic()
    try:
        standby.wait_until_leading(within=30)
        took = time.monotonic() - begin
        window = pair.system.poll(pair.stream, timeout=30_000)
        assert window is not None, standby.log()
        pair.system.ack(window)
    finally:
        send(signal.SIGCONT, pids)
    assert took < 30
    assert wait_until(lambda: "no longer leading" in leader.log(), within=30), leader.log()
    assert wait_until(lambda: leader.log().rstrip().endswith("another pipeline leads"), within=30)
    pair.seal()
    pair.check()
    assert standby.leads()


def test_a_leader_that_is_stopped_hands_over_at_once(pair: Pair) -> None:
    """SIGTERM, as an operator stops it."""
    leader, standby = pair.ready()
    begin = time.monotonic()
    leader.process.send_signal(signal.SIGTERM)
    standby.wait_until_leading(within=30)
    assert time.monotonic() - begin < 5
    assert leader.process.wait(30) == 0
    pair.seal()
    pair.check()


def test_a_standby_takes_over_from_a_killed_leader(pair: Pair, full_size: bool) -> None:
    """Messages pushed after the kill are delivered within 15 seconds; twice that on a busy machine."""
    leader, standby = pair.ready()
    leader.kill()
    took = pair.seal()
    assert standby.leads()
    sys.stderr.write(f"\ntaken over in {took:.1f} s\n")
    assert took < (15 if full_size else 30), pair.logs()
    pair.check()


def test_without_its_jvm_the_process_ends_and_says_so(pair: Pair) -> None:
    """A service manager can restart it."""
    leader = pair.leader()
    pair.seal()
    assert leader.kill_java() == 1
    log = leader.log()
    assert log.splitlines()[-1] == "Spark's Java process ended"
    assert "py4j" not in log


def is_waiting(system: System) -> bool:
    """Whether a push of the pipeline waits for a lock."""
    return bool(
        system.run(
            "SELECT 1 FROM pg_stat_activity WHERE application_name = 'queenspark window sink'"
            " AND wait_event_type = 'Lock' AND datname = current_database()"
        )
    )
