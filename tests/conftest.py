"""Shared fixtures: sizes, PostgreSQL servers, databases and brokers."""

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psycopg
import pytest
from _pytest.nodes import Node
from hypothesis import settings
from psycopg import sql
from xdist.scheduler import LoadScopeScheduling

from queenspark.embedded import EmbeddedPostgres
from queenspark.store.migrate import migrate
from tests.broker_process import Broker
from tests.postgres_servers import DEBIAN_15, PostgresServer, temporary_postgres
from tests.system.pipeline_process import PipelineProcess
from tests.system.system import System
from tests.wire.api import Api

if TYPE_CHECKING:
    from tests.sql.judge import Judge

StartBroker = Callable[..., Broker]

#: Tests that stay in one worker: they share something expensive, or would slow each other down.
SHARING = {
    "system": (
        "tests/system/",
        "tests/examples/",
        "tests/external/test_in_spark.py",
    ),
    "faults": ("tests/chaos/", "tests/backup/", "tests/external/test_large.py"),
    "spark": ("tests/pipeline/", "tests/kafka/", "tests/cli/test_demo.py", "tests/cli/test_up.py"),
    "judge": (
        "tests/sql/test_against_spark.py",
        "tests/jobs/test_against_spark.py",
        "tests/external/test_against_spark.py",
    ),
    "dashboard": ("tests/ui/",),
}
# A busy machine is no reason to fail.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")

BROKERS = pytest.StashKey[list[Broker]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare `--full-size`."""
    parser.addoption(
        "--full-size", action="store_true", help="run crash and load tests with their full numbers"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests of the store on every PostgreSQL: where versions can differ, and at full size all of them."""
    if "database" in metafunc.fixturenames and "store" in metafunc.definition.path.parts:
        is_marked = metafunc.definition.get_closest_marker("every_postgres") is not None
        every = is_marked or metafunc.config.getoption("--full-size")
        versions = ["postgres_18", "postgres_15"] if every else ["postgres_18"]
        metafunc.parametrize("database", versions, indirect=True)


def scope_of(nodeid: str) -> str:
    """The tests that stay on one worker: those of a file, or those that share something."""
    file, _, _ = nodeid.partition("::")
    return next((name for name, files in SHARING.items() if file.startswith(files)), file)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that share something: they take longest."""
    items.sort(key=lambda item: scope_of(item.nodeid) not in SHARING)


class SparkInFewWorkers(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    """Scopes go to whichever worker is free."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> SparkInFewWorkers:
    """Use this scheduler for xdist."""
    return SparkInFewWorkers(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the logs of a failed test's brokers."""
    report = yield
    if report.failed:
        for broker in (broker for node in item.listchain() for broker in node.stash.get(BROKERS, [])):
            report.sections.append((f"log of the broker {broker.url}", broker.log()))
    return report


@pytest.fixture(scope="session")
def full_size(pytestconfig: pytest.Config) -> bool:
    """Whether crash and load tests run with their full numbers."""
    return bool(pytestconfig.getoption("--full-size"))


@pytest.fixture(scope="session")
def postgres_18() -> Iterator[PostgresServer]:
    """The embedded PostgreSQL; quick, not durable, and quiet between the tests."""
    with temporary_postgres(durable=False, quiet=True) as postgres:
        yield PostgresServer(postgres)


@pytest.fixture(scope="session")
def postgres_15() -> Iterator[PostgresServer]:
    """Debian's PostgreSQL 15, the oldest that is supported, where it is installed."""
    if not (DEBIAN_15 / "postgres").exists():
        pytest.skip("Debian's PostgreSQL 15 is not installed")
    with temporary_postgres(bin_dir=DEBIAN_15, durable=False, quiet=True) as postgres:
        yield PostgresServer(postgres)


@pytest.fixture(scope="session")
def system_postgres() -> Iterator[PostgresServer]:
    """The server for tests with Spark, which writes all the time."""
    with temporary_postgres(durable=False) as postgres:
        yield PostgresServer(postgres)


@pytest.fixture
def database(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a fresh, migrated database; on `postgres_18` unless parametrised otherwise."""
    server: PostgresServer = request.getfixturevalue(getattr(request, "param", "postgres_18"))
    with server.database() as url:
        yield url


@pytest.fixture
def durable_postgres() -> Iterator[EmbeddedPostgres]:
    """A migrated server of the test's own, with default durability, that the test may kill."""
    with temporary_postgres(durable=True) as postgres:
        migrate(postgres.url)
        yield postgres


@pytest.fixture
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StartBroker]:
    """Starts brokers: `broker()`, `broker(max_batch=10)`, `broker(database_url=…)`; stopped afterwards."""
    with _brokers(request.node, tmp_path, lambda: request.getfixturevalue("database")) as start:
        yield start


@pytest.fixture(scope="module")
def module_database(postgres_18: PostgresServer) -> Iterator[str]:
    """A migrated database for all tests of a file, which keep to queues of their own (see `queue`)."""
    with postgres_18.database() as url:
        yield url


@pytest.fixture(scope="module")
def module_broker(
    request: pytest.FixtureRequest, module_database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StartBroker]:
    """Starts brokers on `module_database`, for all tests of a file: a start takes longer than most tests."""
    with _brokers(request.node, tmp_path_factory.mktemp("brokers"), lambda: module_database) as start:
        yield start


@contextmanager
def _brokers(node: Node, folder: Path, database: Callable[[], str]) -> Iterator[StartBroker]:
    brokers: list[Broker] = []
    node.stash[BROKERS] = brokers
    numbers = count(1)

    def start(*, database_url: str | None = None, **settings: Any) -> Broker:
        log = folder / f"broker-{next(numbers)}.log"
        brokers.append(Broker(database_url or database(), log, **settings))
        return brokers[-1]

    yield start
    for started in brokers:
        started.stop()


@pytest.fixture(scope="session")
def shared_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One broker for all tests that keep to queues of their own (see `queue`), on a server of its own."""
    with temporary_postgres(durable=False, quiet=True) as postgres:
        migrate(postgres.url)
        log = tmp_path_factory.mktemp("shared-broker") / "broker.log"
        started = Broker(postgres.url, log, stats_interval_seconds=1)
        yield started
        started.stop()


@pytest.fixture(scope="session")
def judge(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Judge]":
    """Spark in ANSI mode and UTC."""
    from tests.sql.judge import Judge

    spark = Judge(tmp_path_factory.mktemp("judge"))
    yield spark
    spark.stop()


@pytest.fixture
def queue() -> str:
    """A queue name that no other test uses."""
    return f"q-{uuid4().hex[:12]}"


@pytest.fixture(scope="session")
def running_system(
    system_postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[System]:
    """PostgreSQL, a broker and the pipeline."""
    folder = tmp_path_factory.mktemp("system")
    with system_postgres.database() as url, ExitStack() as running:
        _move_elsewhere(url)
        broker = Broker(url, folder / "broker.log", retention_interval_seconds=0.3)
        running.callback(broker.stop)
        pipeline = PipelineProcess(url, folder / "pipeline")
        pipeline.start()
        running.callback(pipeline.stop)
        pipeline.wait_until_leading()
        system = System(running.enter_context(Api(broker.url)), url, pipeline)
        warm_up(system)
        yield system


def warm_up(system: System) -> None:
    """Wait for a first window: the first batch takes several seconds."""
    stream = system.define("tumbling", window_duration_ms=100)
    system.api.push(stream.queues[0], 1)
    assert system.wait_for(stream, 1, within=120), system.pipeline.log()


def _move_elsewhere(url: str) -> None:
    """Give the database an unusual time zone, half an hour off, which must not matter."""
    with psycopg.connect(url, autocommit=True) as connection:
        name = sql.Identifier(connection.info.dbname)
        connection.execute(sql.SQL("ALTER DATABASE {} SET timezone = 'Asia/Kolkata'").format(name))


@pytest.fixture
def system(running_system: System) -> System:
    """The running system, whose pipeline is still alive."""
    assert running_system.pipeline.process.poll() is None, running_system.pipeline.log()
    return running_system
