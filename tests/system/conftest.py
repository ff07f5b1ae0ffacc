"""One running system for the tests that keep to streams of their own."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from tests.broker_process import Broker
from tests.postgres_servers import PostgresServer
from tests.system.pipeline_process import PipelineProcess
from tests.system.system import System
from tests.wire.api import Api


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the tests that need the running system run in one worker, so that there is one of it."""
    for item in items:
        if "system" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def running_system(postgres_18: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """PostgreSQL, a broker and the pipeline."""
    folder = tmp_path_factory.mktemp("system")
    with postgres_18.database() as url:
        _move_elsewhere(url)
        broker = Broker(url, folder / "broker.log", retention_interval_seconds=0.3)
        pipeline = PipelineProcess(url, folder / "pipeline")
        pipeline.start()
        pipeline.wait_until_leading()
        with Api(broker.url) as api:
            system = System(api, url, pipeline)
            warm_up(system)
            yield system
        pipeline.stop()
        broker.stop()


def warm_up(system: System) -> None:
    """Let a first window be sealed: the first batch takes several seconds."""
    stream = system.define("tumbling", window_duration_ms=100)
    system.api.push(stream.queues[0], 1)
    assert system.wait_for(stream, 1, within=120), system.pipeline.log()


def _move_elsewhere(url: str) -> None:
    """Give the database a time zone, half an hour off; nobody is to notice."""
    with psycopg.connect(url, autocommit=True) as connection:
        name = sql.Identifier(connection.info.dbname)
        connection.execute(sql.SQL("ALTER DATABASE {} SET timezone = 'Asia/Kolkata'").format(name))


@pytest.fixture
def system(running_system: System) -> System:
    """The running system, whose pipeline is still alive."""
    assert running_system.pipeline.process.poll() is None, running_system.pipeline.log()
    return running_system
