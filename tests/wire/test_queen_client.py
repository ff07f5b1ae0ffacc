"""The published Queen clients against a real broker: every scenario with each release."""

import asyncio
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
from tests.wire.clients.run import run

ROOT = Path(__file__).parents[2]
OLD_CLIENT = Path(sys.prefix) / "queen-0.14"
PATIENCE = 60


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


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_client_0_14(shared_broker: Broker, queue: str, scenario: str) -> None:
    command = [sys.executable, "-m", "tests.wire.clients.run", shared_broker.url, scenario, queue]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(OLD_CLIENT), str(ROOT)))}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, timeout=PATIENCE, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("\n0.14.0\n"), "the older release ran"
