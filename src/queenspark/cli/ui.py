"""`queenspark ui`: the dashboard."""

from typing import Annotated

import typer

from queenspark.cli.exits import Exit, Failure
from queenspark.cli.parent import ExitWithParent, stop_with_parent
from queenspark.cli.serve import Insecure
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
    exit_with_parent: ExitWithParent = False,
) -> None:
    """Serve the dashboard of a running system until Ctrl-C or SIGTERM."""
    require_server()
    from queenspark.ui import server

    settings = Settings.from_env(url=broker, ui_host=host, ui_port=port, insecure=insecure or None)
    if exit_with_parent:
        stop_with_parent()
    try:
        server.run(settings)
    except server.StartError as error:
        raise Failure(str(error), Exit.USAGE) from None
