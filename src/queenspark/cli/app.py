"""The commands, put together."""

import os
import sys
from typing import Annotated

import typer

from queenspark.cli import audit, dlq, groups, jobs, keys, queues, streams
from queenspark.cli.demo.command import demo
from queenspark.cli.exits import Exit, Failure
from queenspark.cli.files.export_command import export
from queenspark.cli.files.import_command import import_files
from queenspark.cli.me import me
from queenspark.cli.output import say
from queenspark.cli.pipeline import pipeline
from queenspark.cli.pop import pop
from queenspark.cli.push import push
from queenspark.cli.seek import seek
from queenspark.cli.serve import migrate, serve
from queenspark.cli.sql import command as sql
from queenspark.cli.status import status
from queenspark.cli.tail import tail
from queenspark.cli.ui import ui
from queenspark.cli.up import up
from queenspark.cli.windows import windows
from queenspark.settings import SettingsError

app = typer.Typer(
    help="Queenspark: message queues on PostgreSQL with windowed streams on Spark.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

RUN, USE, INSPECT = "Run the system", "Produce and consume", "Inspect and administer"


@app.callback()
def trust(
    ca: Annotated[
        str | None,
        typer.Option(
            "--ca", metavar="FILE", help="CA certificates for verifying the broker (default: QUEENSPARK_CA)."
        ),
    ] = None,
) -> None:
    """Options for every command."""
    if ca is not None:
        os.environ["QUEENSPARK_CA"] = ca


def version() -> None:
    """Print the version."""
    from queenspark import __version__

    typer.echo(__version__)


app.command(rich_help_panel=RUN)(up)
app.command(rich_help_panel=RUN)(demo)
app.command(rich_help_panel=RUN)(serve)
app.command(rich_help_panel=RUN)(pipeline)
app.command(rich_help_panel=RUN)(ui)
app.command(rich_help_panel=RUN)(migrate)
app.command(rich_help_panel=RUN)(version)
app.command(rich_help_panel=USE)(push)
app.command(rich_help_panel=USE)(pop)
app.command(rich_help_panel=USE)(tail)
app.command(rich_help_panel=USE)(windows)
app.command("import", rich_help_panel=USE)(import_files)
app.command(rich_help_panel=USE)(export)
app.add_typer(sql.app, name="sql", rich_help_panel=USE)
app.command(rich_help_panel=INSPECT)(status)
app.add_typer(queues.app, name="queues", rich_help_panel=INSPECT)
app.add_typer(streams.app, name="streams", rich_help_panel=INSPECT)
app.add_typer(jobs.app, name="jobs", rich_help_panel=INSPECT)
app.add_typer(groups.app, name="groups", rich_help_panel=INSPECT)
app.add_typer(dlq.app, name="dlq", rich_help_panel=INSPECT)
app.command(rich_help_panel=INSPECT)(seek)
app.add_typer(keys.app, name="keys", rich_help_panel=INSPECT)
app.command(rich_help_panel=INSPECT)(me)
app.command(rich_help_panel=INSPECT)(audit.audit)


def run() -> None:
    """Run the command line; user mistakes end in one sentence and an exit code."""
    try:
        app(prog_name="queenspark")
    except Failure as failure:
        say(str(failure))
        sys.exit(failure.code)
    except SettingsError as error:
        say(str(error))
        sys.exit(Exit.USAGE)
    except BrokenPipeError:
        # The reader closed the pipe; do not write buffered output at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(Exit.OK)
