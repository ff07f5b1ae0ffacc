"""`queenspark serve` and `queenspark migrate`: a broker, and the schema that it needs."""

from typing import Annotated

import typer

from queenspark.cli.exits import Exit, Failure
from queenspark.cli.output import say
from queenspark.cli.parent import ExitWithParent, stop_with_parent
from queenspark.cli.server_extra import require_server
from queenspark.settings import Settings

DatabaseUrl = Annotated[
    str | None,
    typer.Option("--database-url", metavar="URL", help="PostgreSQL URL (default: QUEENSPARK_DATABASE_URL)."),
]
Host = Annotated[str | None, typer.Option("--host", help="Listen address (default: 127.0.0.1).")]
Insecure = Annotated[
    bool,
    typer.Option("--insecure", help="Allow listening beyond loopback without access control."),
]
Port = Annotated[int | None, typer.Option("--port", help="Listen port (default: 6632).")]


def serve(
    database_url: DatabaseUrl = None,
    host: Host = None,
    port: Port = None,
    insecure: Insecure = False,
    exit_with_parent: ExitWithParent = False,
) -> None:
    """Run a broker on a PostgreSQL database. Brokers are stateless; SIGTERM stops one gracefully."""
    require_server()
    from queenspark.broker import server

    settings = Settings.from_env(database_url=database_url, host=host, port=port, insecure=insecure or None)
    require_database(settings)
    if exit_with_parent:
        stop_with_parent()
    try:
        code = server.run(settings)
    except server.StartError as error:
        raise Failure(str(error), Exit.USAGE) from None
    raise typer.Exit(code)


def migrate(database_url: DatabaseUrl = None) -> None:
    """Migrate the database schema. Safe to repeat, and while brokers are running."""
    require_server()
    from queenspark.store import migrate as migrations
    from queenspark.store.errors import StoreError

    url = require_database(Settings.from_env(database_url=database_url))
    try:
        applied = migrations.migrate(url)
    except (StoreError, migrations.SchemaTooNew) as error:
        raise Failure(str(error)) from None
    say(f"Applied {', '.join(applied)}." if applied else "The schema is up to date.")


def require_database(settings: Settings) -> str:
    """The database's URL, or a failure that says how to give one."""
    if settings.database_url is None:
        raise Failure(
            "No database: set QUEENSPARK_DATABASE_URL, or run `queenspark up`, which starts one.", Exit.USAGE
        )
    return settings.database_url
