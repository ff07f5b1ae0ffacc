"""The previous version runs alongside this one, on one database, while messages and windows flow."""

import io
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.broker_process import Broker, free_port
from tests.postgres_servers import temporary_postgres
from tests.system.load import Consumers, Producers, expected_taken, wait_until
from tests.system.pipeline_process import PipelineProcess
from tests.system.system import Stream, System, as_rows, oracle_rows
from tests.system.test_kills import batches, define_all_kinds, oracle
from tests.wire.api import Api

pytestmark = [pytest.mark.crash, pytest.mark.long]

#: The last commit whose brokers and pipelines may run alongside this version's.
BEFORE = "d94de2fefea3078ce8c62daa2f648e780d0f795e"
MESSAGES = 6_000
SEED = 11


@pytest.fixture(scope="module")
def old_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code of the version before, from git."""
    folder = tmp_path_factory.mktemp("before")
    archive = subprocess.run(["git", "archive", BEFORE, "src"], capture_output=True, check=False)
    if archive.returncode:
        pytest.skip(f"commit {BEFORE[:7]} is not in this clone: {archive.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder / "src"


@pytest.fixture
def empty_postgres() -> Iterator[str]:
    """A server that no version has migrated."""
    with temporary_postgres(durable=False) as postgres:
        yield postgres.url


@pytest.mark.timeout(900)
@pytest.mark.parametrize("way", ["the checkpoint is handed over", "a standby takes over"])
def test_nothing_is_lost_or_doubled_while_versions_run_side_by_side(
    way: str, old_source: Path, empty_postgres: str, tmp_path: Path
) -> None:
    """Old and new brokers serve the same queues and groups; the new pipeline takes over from the old one."""
    url = empty_postgres
    with ExitStack() as running:
        old_broker = Broker(url, tmp_path / "old-broker.log", source=old_source)
        running.callback(old_broker.stop)
        old_pipeline = PipelineProcess(url, tmp_path / "pipeline", source=old_source)
        old_pipeline.start()
        running.callback(old_pipeline.stop)
        old_pipeline.wait_until_leading()
        system = System(running.enter_context(Api(old_broker.url)), url, old_pipeline)
        streams = define_all_kinds(system, scale=1)
        everybody = [running.enter_context(Consumers(old_broker.url, retry=True))]
        consume(everybody[0], streams)
        producers = [produce(running, old_broker.url, 1)]
        progress(system, producers[0], MESSAGES // 8)

        new_broker = Broker(url, tmp_path / "new-broker.log")
        running.callback(new_broker.stop)
        everybody.append(running.enter_context(Consumers(new_broker.url, retry=True)))
        consume(everybody[1], streams)
        producers.append(produce(running, new_broker.url, 2))
        for each in producers:
            progress(system, each, MESSAGES // 8)

        new_pipeline = take_over(way, old_pipeline, url, tmp_path)
        running.callback(new_pipeline.stop)
        system.pipeline = new_pipeline
        for each in producers:
            progress(system, each, MESSAGES // 8)
        restart_is_refused(old_broker)
        for each in producers:
            each.finish()

        expected = {stream.name: oracle(system, stream) for stream in streams}

        def everything_taken() -> bool:
            return all(
                sum(each.taken(stream, "a").total() for each in everybody) >= len(expected[stream.name])
                for stream in streams
            )

        wait_until(everything_taken, within=120, every=0.5)
        time.sleep(1)  # duplicates would arrive now
        for consumers in everybody:
            consumers.check()
        for stream in streams:
            assert as_rows(system.sealed(stream)) == oracle_rows(expected[stream.name]), stream.defined
            taken = everybody[0].taken(stream, "a") + everybody[1].taken(stream, "a")
            assert taken == expected_taken(expected[stream.name]), stream.defined
        ((pushed,),) = system.run(
            "SELECT count(*) FROM queenspark.messages m JOIN queenspark.queues q"
            " ON q.id = m.queue_id WHERE q.name IN ('left', 'right')"
        )
        assert pushed == MESSAGES


def consume(consumers: Consumers, streams: list[Stream]) -> None:
    """Take windows of all streams, in one group at all brokers."""
    for stream in streams:
        consumers.consume(stream, "a")


def produce(running: ExitStack, url: str, number: int) -> Producers:
    """Push half of the messages through one broker."""
    return running.enter_context(
        Producers(
            url,
            ["left", "right"],
            messages=MESSAGES // 2,
            per_second=100,
            keys=40,
            seed=SEED + number,
            count=2,
            first=number * MESSAGES,
            retry=True,
        )
    )


def progress(system: System, producers: Producers, messages: int) -> None:
    """Push this many messages, with windows over them."""
    before = batches(system)
    producers.allow(messages)
    assert wait_until(lambda: producers.allowed <= 0, within=180)
    assert wait_until(lambda: batches(system) != before, within=180), system.pipeline.log()
    producers.check()


def take_over(way: str, old: PipelineProcess, url: str, folder: Path) -> PipelineProcess:
    """A pipeline of this version, after the one of the version before has ended."""
    if way == "the checkpoint is handed over":
        new = PipelineProcess(url, old.folder)
        old.stop()
        new.start()
    else:
        new = PipelineProcess(url, folder / "standby")
        new.start()
        assert wait_until(lambda: "standing by" in new.log(), within=120), new.log()
        old.kill()
    new.wait_until_leading()
    return new


def restart_is_refused(old: Broker) -> None:
    """The version before does not start again on the migrated database, and changes nothing in it."""
    second = subprocess.run(
        [sys.executable, "-m", "queenspark", "serve"],
        env={**old.environment, "QUEENSPARK_PORT": str(free_port())},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert second.returncode != 0
    assert b"upgrade queenspark" in second.stderr
