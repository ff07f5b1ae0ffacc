"""The report counts faults that hit something, and lists the others as skipped."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from tests.broker_process import free_port
from tests.chaos.faults import Faults
from tests.chaos.network import Network, to_port
from tests.chaos.plan import Fault


class Sleeper:
    """A service that does nothing."""

    name = "sleeper"
    due_at = 0.0

    def __init__(self) -> None:
        self.process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])

    def pids(self) -> list[int]:
        return [self.process.pid] if self.process.poll() is None else []


@pytest.fixture
def sleeper() -> Iterator[Sleeper]:
    found = Sleeper()
    yield found
    found.process.kill()
    found.process.wait()


def inject(fleet: Any, *kinds: str) -> Faults:
    faults = Faults(SimpleNamespace(heal=lambda: None, **fleet), lambda _line: None)  # type: ignore[arg-type]
    for kind in kinds:
        faults.run([Fault(0.0, kind, 0.05, 0.0)], lambda: None)
    return faults


def test_a_process_that_is_already_down_is_not_hit(sleeper: Sleeper) -> None:
    fleet = {"brokers": [sleeper]}
    assert inject(fleet, "freeze broker", "stop broker").happened == {"freeze broker": 1, "stop broker": 1}
    sleeper.process.wait()
    missed = inject(fleet, "freeze broker", "stop broker", "kill broker", "kill broker")
    assert missed.happened == {}
    assert sum(missed.skipped.values()) == 4


def test_a_link_without_a_connection_is_not_hit() -> None:
    port = free_port()
    network = Network()
    link = network.link("a 1 to b", to_port(port))
    fleet = {"links": [link], "network": network}
    kinds = ("cut link", "delay link", "half-close link", "stall link")
    assert inject(fleet, *kinds).happened == {}
    with socket.create_server(("127.0.0.1", port)) as server, ThreadPoolExecutor() as pool:
        for kind in kinds:
            client = socket.create_connection(("127.0.0.1", link.port), timeout=10)
            accepted, _ = server.accept()
            with client, accepted:
                accepted.sendall(b"x")
                assert client.recv(1) == b"x"  # the link knows the connection
                faults = pool.submit(inject, fleet, kind)
                while not faults.done():
                    with suppress(OSError):
                        client.sendall(b"x")
                    time.sleep(0.001)
                assert faults.result().happened == {f"{kind}: a to b": 1}
