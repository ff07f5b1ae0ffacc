"""`queenspark ui`: the dashboard."""

import threading
from typing import Annotated

import typer

from queenspark.cli.exits import Exit, Failure
from queenspark.cli.serve import Insecure, stop_when_stdin_ends
from queenspark.cli.server_extra import require_server
from queenspark.settings import Settings


def ui(
    broker: Annotated[
        str | None,
        typer.Option(
            "--broker",
            metavar="URL",
            help="Broker URL (default: QUEENSPARK_URL, else http://127.0.0.1:6632).",
        ),
    ] = None,
    host: Annotated[str | None, typer.Option("--host", help="Listen address (default: 127.0.0.1).")] = None,
    port: Annotated[int | None, typer.Option("--port", help="Listen port (default: 6633).")] = None,
    insecure: Insecure = False,
    exit_with_parent: Annotated[
        bool, typer.Option("--exit-with-parent", hidden=True, help="Stop when stdin ends.")
    ] = False,
) -> None:
    """Serve the dashboard of a running system until Ctrl-C or SIGTERM."""
    require_server()
    from queenspark.ui import server

    settings = Settings.from_env(url=broker, ui_host=host, ui_port=port, insecure=insecure or None)
    if exit_with_parent:
        threading.Thread(target=stop_when_stdin_ends, daemon=True).start()
    try:
        server.run(settings)
    except server.StartError as error:
        raise Failure(str(error), Exit.USAGE) from None
