"""The system under test: an embedded PostgreSQL with default durability and one broker, both new."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import psycopg

from queenspark.embedded import EmbeddedPostgres
from queenspark.settings import PREFIX
from queenspark.store.migrate import migrate

START_SECONDS = 60.0


@dataclass(frozen=True)
class Machine:
    """Addresses and processes of the parts."""

    url: str
    port: int
    database_url: str
    broker_pid: int
    postgres_pid: int

    def settle(self) -> None:
        """Flush the dirty pages of earlier measurements, so that later ones do not pay for them."""
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            connection.execute("CHECKPOINT")


@contextmanager
def running_machine() -> Iterator[Machine]:
    """Start both on a temporary folder; stop both and remove it afterwards."""
    with (
        tempfile.TemporaryDirectory(prefix="queenspark-bench-") as folder,
        EmbeddedPostgres(Path(folder) / "data") as postgres,
    ):
        migrate(postgres.url)
        port = free_port()
        log_file = Path(folder) / "broker.log"
        process = start_broker(postgres.url, port, log_file)
        try:
            wait_until_healthy(process, port, log_file)
            yield Machine(f"http://127.0.0.1:{port}", port, postgres.url, process.pid, postgres.pid)
        finally:
            process.terminate()
            process.wait(30)


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start_broker(database_url: str, port: int, log_file: Path, **settings: str) -> "subprocess.Popen[bytes]":
    """Start a broker with default settings but these."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    environment |= {f"{PREFIX}DATABASE_URL": database_url, f"{PREFIX}PORT": str(port)}
    environment[f"{PREFIX}LOG_LEVEL"] = "warning"
    environment |= {f"{PREFIX}{name}": value for name, value in settings.items()}
    with log_file.open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "queenspark", "serve"], env=environment, stdout=log, stderr=log
        )


def wait_until_healthy(process: "subprocess.Popen[bytes]", port: int, log_file: Path) -> None:
    """Wait until the broker is healthy."""
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            if httpx2.get(f"http://127.0.0.1:{port}/health", timeout=2.0).status_code == 200:
                return
        except httpx2.TransportError:
            pass
        time.sleep(0.05)
    raise RuntimeError(f"the broker did not start:\n{log_file.read_text(errors='replace')[-2000:]}")
