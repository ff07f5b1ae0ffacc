"""The published Queen clients against a real broker: every scenario with each release."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import queen

from tests.broker_process import Broker
from tests.wire.clients.catalogue import SCENARIOS
from tests.wire.clients.run import PATIENCE, RESULT, run

ROOT = Path(__file__).parents[2]
OLD_CLIENT = Path(sys.prefix) / "queen-0.14"


@contextmanager
def signal_handlers_kept() -> Iterator[None]:
    """The client takes over the handlers of this process and does not give them back."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    handlers = [signal.getsignal(number) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, handlers, strict=True):
            signal.signal(number, handler)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_client_2_6(shared_broker: Broker, queue: str, scenario: str) -> None:
    assert queen.__version__ == "2.6.0"
    with signal_handlers_kept():
        asyncio.run(asyncio.wait_for(run(shared_broker.url, scenario, queue), PATIENCE))


class OldClient:
    """A process with the older release, which runs one scenario after the other."""

    def __init__(self, url: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.wire.clients.run", url],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join((str(OLD_CLIENT), str(ROOT)))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.version = self._result()

    def failure(self, scenario: str, queue: str) -> str | None:
        """How a scenario fails, if it does."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{json.dumps([scenario, queue])}\n")
        self._process.stdin.flush()
        return self._result()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def _result(self) -> str | None:
        assert self._process.stdout is not None
        printed = ""
        for line in self._process.stdout:
            if line.startswith(RESULT):
                result: str | None = json.loads(line.removeprefix(RESULT))
                return result
            printed += line
        raise AssertionError(f"the client ended: {printed}")


@pytest.fixture(scope="module")
def old_client(shared_broker: Broker) -> Iterator[OldClient]:
    """The older release, for all scenarios."""
    client = OldClient(shared_broker.url)
    yield client
    client.close()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_client_0_14(old_client: OldClient, queue: str, scenario: str) -> None:
    assert old_client.version == "0.14.0", "the older release runs"
    failure = old_client.failure(scenario, queue)
    assert failure is None, failure
