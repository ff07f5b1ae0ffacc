"""Everything on one machine: PostgreSQL, a broker, the pipeline and the dashboard, from start to stop."""

import errno
import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

from queenspark.cli.broker_process import BrokerProcess
from queenspark.cli.exits import Exit, Failure
from queenspark.cli.pipeline_process import PipelineProcess
from queenspark.cli.postgres_process import PostgresProcess
from queenspark.cli.supervisor import Supervisor
from queenspark.cli.ui_process import UiProcess
from queenspark.embedded import EmbeddedPostgresError
from queenspark.settings import Settings
from queenspark.signals import STOPPING, on_stop


class LocalSystem:
    """The processes of `queenspark up`. With a database URL in the settings no PostgreSQL is started."""

    def __init__(self, settings: Settings, *, with_pipeline: bool = True, with_ui: bool = True) -> None:
        os.umask(0o077)  # logs, checkpoint and temporary files are for their owner only; children inherit it
        self.settings = settings
        self.postgres = None if settings.database_url is not None else _embedded(settings)
        url = self.postgres.url if self.postgres else str(settings.database_url)
        self.broker = BrokerProcess(settings, url)
        self.pipeline = PipelineProcess(settings, url)
        self.ui = UiProcess(settings, self.broker.url) if with_ui else None
        self._with_pipeline = with_pipeline
        self._running = ExitStack()
        self._supervisor: Supervisor | None = None

    def start(self, tell: Callable[[str], object]) -> None:
        """Start the parts one after the other; `tell` is called for each start and restart.

        The pipeline needs a few more seconds; this does not wait for it.
        """
        try:
            if self.postgres is None:
                self._refuse_taken_ports()
            else:
                self._running.callback(self.postgres.stop)
                # In this order, so that a refusal comes before anything is started or made.
                self.postgres.data_dir.take()
                self._refuse_taken_ports()
                self._empty_temporary_folder()
                tell(f"Starting PostgreSQL on {self.settings.data_dir}.")
                self.postgres.start()
            self._running.callback(self.broker.stop)
            tell("Starting the broker.")
            self.broker.start()
        except EmbeddedPostgresError as error:
            raise Failure(str(error), Exit.USAGE) from None
        if self._with_pipeline:
            self._running.callback(self.pipeline.stop)
            self.pipeline.spawn()
        if self.ui is not None:
            self._running.callback(self.ui.stop)
            self.ui.spawn()
        children = [self.postgres, self.broker, self.pipeline if self._with_pipeline else None, self.ui]
        self._supervisor = Supervisor([child for child in children if child is not None], tell)

    def _refuse_taken_ports(self) -> None:
        settings = self.settings
        _refuse_taken_port(settings.host, settings.port, "--port")
        if self.ui is not None:
            _refuse_taken_port(settings.ui_host, settings.ui_port, "--ui-port")

    def _empty_temporary_folder(self) -> None:
        """Remove leftovers of killed processes; the data folder is locked by us."""
        folder = self.settings.data_dir.absolute() / "tmp"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(exist_ok=True)
        for process in (self.broker, self.pipeline, self.ui):
            if process is not None:
                process.keep_temporary_files_in(folder)

    def check(self) -> None:
        """Restart the parts that have ended; raises `Failure` when one fails every time."""
        if self._supervisor is not None:
            self._supervisor.check()

    def kill(self) -> None:
        """Kill broker, pipeline and dashboard at once."""
        self.broker.kill()
        self.pipeline.kill()
        if self.ui is not None:
            self.ui.kill()

    @property
    def logs(self) -> list[Path]:
        """The log files."""
        logs = [self.broker.log_file, *([self.pipeline.log_file] if self._with_pipeline else [])]
        logs += [] if self.ui is None else [self.ui.log_file]
        return logs if self.postgres is None else [*logs, self.postgres.log_file]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()


class Stopping:
    """The first signal ends the block with KeyboardInterrupt; further ones call `hurry`."""

    def __init__(self) -> None:
        self.begun = False
        self.hurry: Callable[[], None] | None = None

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        if not self.begun:
            self.begun = True
            raise KeyboardInterrupt
        if self.hurry is not None:
            self.hurry()


@contextmanager
def stopped_by_signals() -> Iterator[Stopping]:
    """Ctrl-C, SIGTERM and SIGHUP interrupt the block. After it, when the command is over, they do nothing."""
    stopping = Stopping()
    on_stop(stopping.on_signal)
    try:
        yield stopping
    finally:
        for number in STOPPING:
            signal.signal(number, signal.SIG_IGN)


def _embedded(settings: Settings) -> PostgresProcess:
    try:
        return PostgresProcess(settings)
    except EmbeddedPostgresError as error:
        raise Failure(str(error), Exit.USAGE) from None


def _refuse_taken_port(host: str, port: int, option: str) -> None:
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            # A socket that another one listens on may be bound, but not listened on.
            probe.listen(1)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            reason = f"Port {port} is already in use: choose another one with {option}."
        else:
            reason = f"Cannot listen on {host}, port {port}: {error.strerror}."
        raise Failure(reason, Exit.USAGE) from None
