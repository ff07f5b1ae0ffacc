"""One running system for the tests that keep to streams of their own."""

from collections.abc import Iterator

import pytest

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
        broker = Broker(url, folder / "broker.log")
        pipeline = PipelineProcess(url, folder / "pipeline")
        pipeline.start()
        pipeline.wait_until_leading()
        with Api(broker.url) as api:
            yield System(api, url, pipeline)
        pipeline.stop()
        broker.stop()


@pytest.fixture
def system(running_system: System) -> System:
    """The running system, whose pipeline is still alive."""
    assert running_system.pipeline.process.poll() is None, running_system.pipeline.log()
    return running_system
