"""`queenspark up`: everything on one machine, until Ctrl-C."""

import errno
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.panel import Panel
from rich.table import Table

from queenspark.cli.broker_process import BrokerProcess
from queenspark.cli.exits import Exit, Failure
from queenspark.cli.output import out, say
from queenspark.cli.pipeline_process import PipelineProcess
from queenspark.cli.serve import Host, Port
from queenspark.embedded import EmbeddedPostgres, EmbeddedPostgresError
from queenspark.settings import Settings

LOOK_SECONDS = 0.2


def up(
    data_dir: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where the data is (default: queenspark-data).")
    ] = None,
    host: Host = None,
    port: Port = None,
    with_pipeline: Annotated[
        bool, typer.Option("--pipeline/--no-pipeline", help="Without it there are queues, but no windows.")
    ] = True,
) -> None:
    """Start PostgreSQL, a broker and the pipeline on this machine, until Ctrl-C or SIGTERM.

    With QUEENSPARK_DATABASE_URL set, that PostgreSQL is used and none is started.
    """
    settings = Settings.from_env(data_dir=data_dir, host=host, port=port)
    with _stopped_by_signals() as stopping, ExitStack() as running:
        try:
            postgres = EmbeddedPostgres(settings.data_dir) if settings.database_url is None else None
            url = postgres.url if postgres else str(settings.database_url)
            broker, pipeline = BrokerProcess(settings, url), PipelineProcess(settings, url)
            stopping.hurry = [broker.kill, pipeline.kill]
            _start(settings, postgres, broker, running)
            if with_pipeline:
                running.callback(pipeline.stop)
                pipeline.spawn()
            _show(settings, postgres, broker, pipeline)
            _watch(postgres, broker, pipeline if with_pipeline else None)
        except EmbeddedPostgresError as error:
            raise Failure(str(error), Exit.USAGE) from None
        finally:
            stopping.begun = True


def _start(
    settings: Settings, postgres: EmbeddedPostgres | None, broker: BrokerProcess, running: ExitStack
) -> None:
    if postgres is None:
        _refuse_taken_port(settings)
    else:
        running.callback(postgres.stop)
        # In this order, so that a refusal comes before anything is started or made.
        postgres.data_dir.take()
        _refuse_taken_port(settings)
        say(f"Starting PostgreSQL on {settings.data_dir}.")
        postgres.start()
    running.callback(broker.stop)
    say("Starting the broker.")
    broker.start()


class _Stopping:
    """The first signal ends the wait, by KeyboardInterrupt; a further one is for the impatient."""

    def __init__(self) -> None:
        self.begun = False
        self.hurry: list[Callable[[], None]] = []

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.begun:
            for hurry in self.hurry:
                hurry()
            return
        self.begun = True
        raise KeyboardInterrupt


@contextmanager
def _stopped_by_signals() -> Iterator[_Stopping]:
    stopping = _Stopping()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stopping.on_signal)
    try:
        yield stopping
    except KeyboardInterrupt:
        say("Stopped.")


def _show(
    settings: Settings, postgres: EmbeddedPostgres | None, broker: BrokerProcess, pipeline: PipelineProcess
) -> None:
    """Say where things are and what to try first."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold")
    facts.add_column(overflow="fold")
    facts.add_row("broker", broker.url)
    facts.add_row(
        "data",
        str(settings.data_dir.absolute()) if postgres else "in the PostgreSQL of QUEENSPARK_DATABASE_URL",
    )
    facts.add_row("logs", "\n".join(str(path) for path in _logs(postgres, broker, pipeline)))
    body = """'{"items":[{"queue":"hello","payload":{"n":1}}]}'"""
    facts.add_row("try", f"curl {broker.url}/api/v1/push -H 'Content-Type: application/json' -d {body}")
    facts.add_row("", f"curl '{broker.url}/api/v1/pop/queue/hello?autoAck=true'")
    facts.add_row("stop", "Ctrl-C")
    out().print(Panel(facts, title="Queenspark is up", border_style="green", expand=False))


def _logs(postgres: EmbeddedPostgres | None, broker: BrokerProcess, pipeline: PipelineProcess) -> list[Path]:
    logs = [broker.log_file, pipeline.log_file]
    return logs if postgres is None else [*logs, postgres.data_dir.log_file]


def _watch(
    postgres: EmbeddedPostgres | None, broker: BrokerProcess, pipeline: PipelineProcess | None
) -> None:
    """Wait for a signal; when PostgreSQL or the broker ends by itself, everything ends."""
    try:
        while True:
            time.sleep(LOOK_SECONDS)
            if postgres is not None and not postgres.running:
                raise Failure(f"PostgreSQL ended; its log: {postgres.data_dir.log_file}")
            if not broker.running:
                raise Failure(f"The broker ended; its log: {broker.log_file}")
            if pipeline is not None:
                pipeline.look()
    except KeyboardInterrupt:
        say("Stopping.")
        raise


def _refuse_taken_port(settings: Settings) -> None:
    try:
        family, *_, address = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            # A socket that another one listens on may be bound, but not listened on.
            probe.listen(1)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            reason = f"Port {settings.port} is taken: choose another one with --port."
        else:
            reason = f"{settings.host}, port {settings.port}, cannot be used: {error.strerror}."
        raise Failure(reason, Exit.USAGE) from None
