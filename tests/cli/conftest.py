"""The command line, called as a person calls it, against a real broker."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.broker_process import Broker
from tests.command import Command, Result, commands
from tests.horizon import wait_for_horizon
from tests.wire.api import Api
from tests.wire.sql import Sql


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command: `command("push", "orders", stdin=b"1")`."""
    return commands(monkeypatch, capsys)


@pytest.fixture
def queenspark(command: Command, shared_broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command that talks to a running broker, and finds all that was pushed before."""
    monkeypatch.setenv("QUEENSPARK_URL", shared_broker.url)

    def run(*arguments: str, **more: Any) -> Result:
        wait_for_horizon(shared_broker.database_url)
        return command(*arguments, **more)

    return run


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that PostgreSQL's user can reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="queenspark-test-", ignore_cleanup_errors=True) as name:
        yield Path(name)


@pytest.fixture
def sql(shared_broker: Broker) -> Iterator[Sql]:
    """The broker's SQL, and a stand-in for the pipeline."""
    with Api(shared_broker.url, shared_broker.database_url) as api:
        yield Sql(api)


@pytest.fixture
def clicks(sql: Sql) -> Iterator[str]:
    """A stream over a queue."""
    name = f"clicks_{uuid4().hex[:10]}"
    sql(f"CREATE STREAM {name} (page STRING, ms BIGINT) WITH (queue = '{name}')")
    yield name
    sql(f"DROP STREAM IF EXISTS {name} CASCADE")
