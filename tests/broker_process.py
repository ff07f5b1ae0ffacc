"""A broker as a process of its own, as the tests start, stop and kill it."""

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import httpx2

from tests.forked import Forked

LOG_LINES = 200
PORTS = 2000
"""Per test worker; below the system's range of ephemeral ports."""


def _own_ports() -> Iterator[int]:
    """The ports of this worker, one after the other; other runs on this machine begin elsewhere."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    first = 12_000 + worker % 10 * PORTS
    for number in count(random.randrange(PORTS)):
        yield first + number % PORTS


_ports = _own_ports()


def free_port() -> int:
    """A free port, reserved for the caller."""
    for port in _ports:
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("there is always another port")


def clean_environment(source: Path | None = None, /, **settings: Any) -> dict[str, str]:
    """This process's environment with exactly these settings of Queenspark, and its code from `source`."""
    # NiceGUI behaves differently where it takes itself for tested.
    ours = ("QUEENSPARK_", "PYTEST_CURRENT_TEST")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    environment |= {f"QUEENSPARK_{name.upper()}": str(value) for name, value in settings.items()}
    if source is not None:
        environment["PYTHONPATH"] = str(source)
    return environment


class Broker:
    """`queenspark serve` on a free port; `settings` are those of `queenspark.settings.Settings`.

    `source` is the folder of another version's code.
    """

    def __init__(
        self, database_url: str, log_file: Path, *, source: Path | None = None, **settings: Any
    ) -> None:
        self.port: int = settings.pop("port", None) or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.database_url = database_url
        self.log_file = log_file
        self.environment = clean_environment(source, database_url=database_url, port=self.port, **settings)
        self._is_ours = source is None
        self.process: subprocess.Popen[bytes] | Forked
        self.start()

    @property
    def pid(self) -> int:
        """The process id of the broker."""
        return self.process.pid

    def start(self, within: float = 30.0) -> None:
        """Start the broker (again, on the same port) and wait until it is healthy."""
        self.process = self._launched()
        deadline = time.monotonic() + within
        while not self.healthy():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"the broker did not start ({self.process.returncode}):\n{self.log()}")
            time.sleep(0.02)

    def _launched(self) -> subprocess.Popen[bytes] | Forked:
        if self._is_ours:
            return Forked(["serve"], self.environment, self.log_file)
        with self.log_file.open("ab") as log:
            command = [sys.executable, "-m", "queenspark", "serve"]
            return subprocess.Popen(command, env=self.environment, stdout=log, stderr=log)

    def healthy(self) -> bool:
        """Whether the broker reports that it is healthy."""
        try:
            # Reading certificates, which plain HTTP needs none of, would take longer than the request.
            return httpx2.get(f"{self.url}/health", timeout=2.0, verify=False).status_code == 200
        except httpx2.TransportError:
            return False

    def stop(self, within: float = 20.0) -> int:
        """Stop the broker as an operator does; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(within)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def kill(self) -> None:
        """Kill the broker as a crash would."""
        self.process.kill()
        self.process.wait()

    @contextmanager
    def stuck(self) -> Iterator[None]:
        """Stop the process for a while: it accepts connections and responds to nothing."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def log(self) -> str:
        """The end of the broker's log."""
        lines = self.log_file.read_text(errors="replace").splitlines() if self.log_file.exists() else []
        return "\n".join(lines[-LOG_LINES:])
