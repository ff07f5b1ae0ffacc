"""Supervises all processes of a run: each is restarted when it exits."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import httpx2
import psycopg

from queenspark.embedded import EmbeddedPostgres, EmbeddedPostgresError
from queenspark.store.migrate import migrate
from tests.broker_process import clean_environment, free_port
from tests.chaos.clock import wrong_clock
from tests.chaos.disk import Disk
from tests.chaos.load import PRODUCERS
from tests.chaos.network import Link, Network, to_port, to_socket
from tests.postgres_servers import prepare_data_dir
from tests.processes import descendants
from tests.system.pipeline_process import PipelineProcess, send

CONSUMERS = ("x", "y")
WRONG_CLOCK_SECONDS = 3600
DISK_MEGABYTES = 8192
POSTGRES = {"max_wal_size": "256MB", "min_wal_size": "80MB", "shared_buffers": "128MB"}
EVERY_SECONDS = 0.25


class Service(Protocol):
    """A process that is restarted when it exits."""

    name: str
    #: The earliest time of a restart, by the monotonic clock.
    due_at: float

    def is_running(self) -> bool: ...
    def is_wanted(self) -> bool: ...
    def launch(self) -> None: ...
    def pids(self) -> list[int]: ...


class Command:
    """A Python program as a service. Without `again`, it is not restarted after exit code 0."""

    def __init__(
        self,
        name: str,
        folder: Path,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        *,
        again: bool,
    ) -> None:
        self.name = name
        self.due_at = 0.0
        self._arguments = [sys.executable, "-m", *arguments]
        self._environment = dict(environment)
        self._log = folder / f"{name}.log"
        self._again = again
        self.process: subprocess.Popen[bytes] | None = None
        #: The exit codes of its processes; negative after a signal.
        self.exits: list[int] = []

    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def log(self) -> str:
        """Return the end of its log."""
        return self._log.read_text(errors="replace")[-3000:]

    def is_wanted(self) -> bool:
        return self._again or self.process is None or self.process.poll() != 0

    def reap(self) -> None:
        """Wait for the process that was killed."""
        if self.process is not None:
            self.process.wait()

    def launch(self) -> None:
        if self.process is not None:
            self.exits.append(self.process.wait())
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(self._arguments, env=self._environment, stdout=log, stderr=log)

    def pids(self) -> list[int]:
        return [self.process.pid] if self.process is not None and self.is_running() else []


class Pipeline:
    """A pipeline as a service."""

    def __init__(self, name: str, process: PipelineProcess) -> None:
        self.name = name
        self.due_at = 0.0
        self.own = process
        self._started = False

    def is_running(self) -> bool:
        return self._started and self.own.process.poll() is None

    def is_wanted(self) -> bool:
        return True

    def reap(self) -> None:
        """Wait for the process that was killed."""
        if self._started:
            self.own.process.wait()

    def launch(self) -> None:
        self._started = True
        self.own.start()

    def pids(self) -> list[int]:
        return [self.own.process.pid, *descendants(self.own.process.pid)] if self.is_running() else []


class Postgres:
    """PostgreSQL as a service."""

    name = "PostgreSQL"

    def __init__(self, server: EmbeddedPostgres) -> None:
        self.due_at = 0.0
        self.server = server

    def is_running(self) -> bool:
        return self.server.running

    def is_wanted(self) -> bool:
        return True

    def launch(self) -> None:
        with suppress(EmbeddedPostgresError):  # its disk is full; retried
            self.server.start()

    def pids(self) -> list[int]:
        return [self.server.pid] if self.server.running else []


class Fleet:
    """PostgreSQL, two brokers, two pipelines, producers and consumers, connected by links."""

    def __init__(self, folder: Path, disk: Disk, *, seed: int, per_second: float, keys: int) -> None:
        self.folder = folder
        self.disk = disk
        self.network = Network()
        prepare_data_dir(disk.folder / "data")
        self.postgres = Postgres(EmbeddedPostgres(disk.folder / "data", options=POSTGRES))
        self.postgres.server.start()
        self.database_url = self.postgres.server.url
        migrate(self.database_url)
        self.links: list[Link] = []
        skew = wrong_clock(folder, WRONG_CLOCK_SECONDS)
        #: Whether one of the brokers has a wrong clock.
        self.is_skewed = bool(skew)
        self.ports = [free_port(), free_port()]
        self.brokers = []
        for number, port in enumerate(self.ports):
            settings = clean_environment(database_url=self._database(f"broker {number}"), port=port)
            environment = settings | (skew if number else {})
            broker = Command(f"broker-{number}", folder, ["queenspark", "serve"], environment, again=True)
            self.brokers.append(broker)
        self.pipelines = [
            Pipeline(
                f"pipeline-{number}",
                PipelineProcess(
                    self._database(f"pipeline {number}"), folder / f"pipeline-{number}",
                    spark_checkpoint=folder / "checkpoint", spark_driver_memory="1g",
                ),
            )
            for number in range(2)
        ]  # fmt: skip
        urls = [self._broker(f"clients to broker {number}", port) for number, port in enumerate(self.ports)]
        environment = clean_environment()
        self.producers = [
            Command(
                f"producer-{name}", folder,
                ["tests.chaos.producer", name, str(folder), str(seed), str(per_second / len(PRODUCERS)),
                 str(keys), *urls],
                environment, again=False,
            )
            for name in PRODUCERS
        ]  # fmt: skip
        self.consumers = [
            Command(
                f"consumer-{name}", folder, ["tests.chaos.consumer", name, str(folder), *urls], environment,
                again=False,
            )
            for name in CONSUMERS
        ]  # fmt: skip
        self._services: list[Service] = [self.postgres]
        self._ended = threading.Event()
        self._supervisor = threading.Thread(target=self._supervise, daemon=True)
        self._supervisor.start()
        #: The number of starts and restarts.
        self.restarts = 0

    def _database(self, user: str) -> str:
        socket = self.postgres.server.data_dir.socket_dir / ".s.PGSQL.5432"
        link = self.network.link(f"{user} to PostgreSQL", to_socket(socket))
        self.links.append(link)
        return f"postgresql://postgres@127.0.0.1:{link.port}/postgres?sslmode=disable&gssencmode=disable"

    def _broker(self, name: str, port: int) -> str:
        link = self.network.link(name, to_port(port))
        self.links.append(link)
        return f"http://127.0.0.1:{link.port}"

    @property
    def url(self) -> str:
        """The URL of a broker, bypassing the links."""
        return f"http://127.0.0.1:{self.ports[0]}"

    def add(self, *services: Service) -> None:
        """Start services and keep them running."""
        self._services = [*self._services, *services]

    def wait_until_healthy(self, within: float) -> None:
        """Wait until both brokers are healthy and there is a leader."""
        deadline = time.monotonic() + within
        while not (all(map(_is_healthy, self.ports)) and self.leader() is not None):
            if time.monotonic() > deadline:
                raise RuntimeError(f"brokers and pipelines did not start; see {self.folder}")
            time.sleep(0.2)

    def leader(self) -> Pipeline | None:
        """Return the current leader, or None if there is none or it cannot be determined."""
        for pipeline in self.pipelines:
            with suppress(psycopg.Error):
                if pipeline.is_running() and self._leads(pipeline):
                    return pipeline
        return None

    def _leads(self, pipeline: Pipeline) -> bool:
        with psycopg.connect(self.database_url, connect_timeout=3) as connection:
            row = connection.execute(
                "SELECT holder FROM queenspark.pipeline WHERE expires_at > clock_timestamp()"
            ).fetchone()
        return row is not None and f":{pipeline.own.process.pid}:" in row[0]

    def last_batch(self) -> str | None:
        """Return the time of the last pushed batch, or None if it cannot be determined."""
        with suppress(psycopg.Error), psycopg.connect(self.database_url, connect_timeout=3) as connection:
            row = connection.execute("SELECT max(updated_at)::text FROM queenspark.progress").fetchone()
            return row[0] if row is not None else None
        return None

    def heal(self) -> None:
        """End all ongoing faults."""
        for link in self.links:
            self.network.do(link.heal)
        self.disk.empty()

    def _supervise(self) -> None:
        while not self._ended.wait(EVERY_SECONDS):
            for service in self._services:
                if service.is_running() or not service.is_wanted() or time.monotonic() < service.due_at:
                    continue
                service.launch()
                service.due_at = time.monotonic() + 1.0
                self.restarts += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._supervisor.join()
        for service in reversed(self._services):
            if service is not self.postgres:
                send(signal.SIGCONT, service.pids())
                send(signal.SIGKILL, service.pids())
        for client in (*self.brokers, *self.producers, *self.consumers):
            client.reap()
        for pipeline in self.pipelines:
            pipeline.reap()
        self.postgres.server.stop()


def kill(service: Service, down_seconds: float, number: signal.Signals = signal.SIGKILL) -> bool:
    """Send a signal to all processes of a service, and delay its restart; return whether there were any."""
    service.due_at = time.monotonic() + down_seconds
    return send(number, service.pids())


def kill_one(pid: int, number: signal.Signals = signal.SIGKILL) -> bool:
    """Send a signal to a process; return whether it exists."""
    return send(number, [pid])


def _is_healthy(port: int) -> bool:
    try:
        return httpx2.get(f"http://127.0.0.1:{port}/health", timeout=2.0, verify=False).status_code == 200
    except httpx2.TransportError:
        return False
