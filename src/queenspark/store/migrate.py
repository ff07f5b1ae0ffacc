"""Bring a database to this version's schema: numbered migrations once each, functions replaced as a whole."""

from __future__ import annotations

import hashlib
import re
from importlib.resources import files

import psycopg
from psycopg import sql

from .errors import DatabaseUnavailable, StoreError
from .queries import text

_LOCK = 0x71737061726B  # "qspark"
_FILE = re.compile(r"^(\d{4}_\w+)\.sql$")


class SchemaTooNew(StoreError):
    """The database was migrated by a newer version than this one."""


def migrations() -> list[str]:
    """Names of all migrations, in order."""
    folder = files(__package__) / "sql" / "migrations"
    return sorted(match[1] for entry in folder.iterdir() if (match := _FILE.match(entry.name)))


def migrate(url: str) -> list[str]:
    """Apply what is missing, under an advisory lock; return the names of what was applied."""
    try:
        connection = psycopg.connect(url, autocommit=True, application_name="queenspark migrate")
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(f"cannot connect to the database: {error}") from error
    with connection:
        connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
        with connection.transaction():
            applied = _apply_migrations(connection)
            if _apply_functions(connection):
                applied.append("functions")
        # In a transaction of its own: this one's id may be older than pushes that are quite in order.
        connection.execute("SELECT queenspark.check_generation()")
        return applied


def _apply_migrations(connection: psycopg.Connection) -> list[str]:
    connection.execute("CREATE SCHEMA IF NOT EXISTS queenspark")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS queenspark.migrations"
        " (name text PRIMARY KEY, checksum text, applied_at timestamptz NOT NULL DEFAULT clock_timestamp())"
    )
    rows = connection.execute("SELECT name FROM queenspark.migrations WHERE name <> 'functions'").fetchall()
    done = {str(row[0]) for row in rows}
    known = migrations()
    if unknown := sorted(done - set(known)):
        raise SchemaTooNew(
            f"the database has migration {unknown[-1]}, which this version does not know; upgrade queenspark"
        )
    todo = [name for name in known if name not in done]
    for name in todo:
        connection.execute(sql.SQL(text(f"migrations/{name}.sql")))
        connection.execute("INSERT INTO queenspark.migrations (name) VALUES (%s)", (name,))
    return todo


def _apply_functions(connection: psycopg.Connection) -> bool:
    body = text("functions.sql")
    checksum = hashlib.sha256(body.encode()).hexdigest()
    row = connection.execute("SELECT checksum FROM queenspark.migrations WHERE name = 'functions'").fetchone()
    if row is not None and row[0] == checksum:
        return False
    old = connection.execute(
        "SELECT p.oid::regprocedure::text FROM pg_proc p WHERE p.pronamespace = 'queenspark'::regnamespace"
    ).fetchall()
    for (signature,) in old:
        connection.execute(sql.SQL("DROP FUNCTION IF EXISTS {}").format(sql.SQL(signature)))
    connection.execute(sql.SQL(body))
    connection.execute(
        "INSERT INTO queenspark.migrations (name, checksum) VALUES ('functions', %s)"
        " ON CONFLICT (name) DO UPDATE SET checksum = excluded.checksum, applied_at = clock_timestamp()",
        (checksum,),
    )
    return True
