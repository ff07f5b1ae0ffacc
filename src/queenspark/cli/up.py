"""`queenspark up`: everything on one machine, until Ctrl-C."""

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.panel import Panel
from rich.table import Table

from queenspark.cli.exits import Exit, Failure
from queenspark.cli.local_system import LocalSystem, stopped_by_signals
from queenspark.cli.output import out, say
from queenspark.cli.serve import Host, Insecure, Port
from queenspark.cli.server_extra import require_server
from queenspark.loopback import is_loopback
from queenspark.settings import Settings

CHECK_SECONDS = 0.2


def up(
    data_dir: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Data folder (default: queenspark-data).")
    ] = None,
    host: Host = None,
    port: Port = None,
    insecure: Insecure = False,
    with_pipeline: Annotated[
        bool,
        typer.Option(
            "--pipeline/--no-pipeline",
            help="Run Spark; without it queues work, but windows and SQL jobs do not.",
        ),
    ] = True,
    with_ui: Annotated[bool, typer.Option("--ui/--no-ui", help="Serve the dashboard.")] = True,
    ui_port: Annotated[
        int | None, typer.Option("--ui-port", metavar="PORT", help="Port of the dashboard (default: 6633).")
    ] = None,
) -> None:
    """Run PostgreSQL, a broker, the pipeline and the dashboard until Ctrl-C or SIGTERM.

    Processes that exit are restarted; after five failed starts in a row, the command exits.
    With QUEENSPARK_DATABASE_URL set, that database is used instead of an embedded PostgreSQL.
    """
    require_server()
    settings = Settings.from_env(
        data_dir=data_dir, host=host, port=port, ui_port=ui_port, insecure=insecure or None
    )
    if not is_loopback(settings.host):
        _refuse_exposure(settings)
    with stopped_by_signals() as stopping:
        try:
            with LocalSystem(settings, with_pipeline=with_pipeline, with_ui=with_ui) as system:
                stopping.hurry = system.kill
                try:
                    system.start(say)
                    _show(system)
                    while not stopping.begun:
                        time.sleep(CHECK_SECONDS)
                        system.check()
                except KeyboardInterrupt:
                    pass
                finally:
                    stopping.begun = True
                say("Stopping.")
        except KeyboardInterrupt:
            pass  # before anything was started
        say("Stopped.")


def _refuse_exposure(settings: Settings) -> None:
    """As the broker does, but before PostgreSQL is started."""
    from queenspark.broker import server

    try:
        server.check_exposure(settings)
    except server.StartError as error:
        raise Failure(str(error), Exit.USAGE) from None


def _show(system: LocalSystem) -> None:
    """Print addresses, folders and first commands."""
    url = system.broker.url
    folder = str(system.settings.data_dir.absolute())
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold")
    facts.add_column(overflow="fold")
    if system.ui is not None:
        facts.add_row("dashboard", system.ui.url)
    facts.add_row("broker", url)
    facts.add_row("data", folder if system.postgres else "in the database of QUEENSPARK_DATABASE_URL")
    if system.postgres:
        facts.add_row("database", system.postgres.url)
    facts.add_row("logs", "\n".join(str(path) for path in system.logs))
    body = """'{"items":[{"queue":"hello","payload":{"n":1}}]}'"""
    facts.add_row("try", f"curl {url}/api/v1/push -H 'Content-Type: application/json' -d {body}")
    facts.add_row("", f"curl '{url}/api/v1/pop/queue/hello?autoAck=true'")
    facts.add_row("stop", "Ctrl-C")
    out().print(Panel(facts, title="Queenspark is up", border_style="green", expand=False))
