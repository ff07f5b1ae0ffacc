"""Migrate a database to this version's schema while older versions keep running.

A migration begins with comment lines that control how it is applied:

    -- oldest: 0005         versions without migration 0005 may not run once this one is applied
    -- transaction: none    statement by statement, for CREATE INDEX CONCURRENTLY; must be idempotent

Each migration is one transaction unless it says otherwise. It waits only briefly for a lock, because all
later statements queue up behind it, and retries.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import NamedTuple

import psycopg
from psycopg import sql

from .errors import DatabaseBusy, DatabaseUnavailable, StoreError
from .functions import FUNCTION_SET, drop_functions_below, install_functions
from .queries import text

LOCK_SECONDS = 0.5  # for a table in use
PATIENCE_SECONDS = 60.0
_PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0)
_LOCK = 0x71737061726B  # "qspark"
_FILE = re.compile(r"^(\d{4}_\w+)\.sql$")
_HEADER = re.compile(r"^-- (oldest|transaction): (\w+)$", re.MULTILINE)
_END_OF_STATEMENT = re.compile(r";\s*$", re.MULTILINE)


class SchemaTooNew(StoreError):
    """The database was migrated by a newer version, and this one may no longer run on it."""


class Migration(NamedTuple):
    """A file of the folder `migrations`."""

    name: str
    text: str
    oldest: int
    is_transaction: bool

    @classmethod
    def read(cls, name: str) -> Migration:
        """Read the migration of this name."""
        body = text(f"migrations/{name}.sql")
        header = dict(_HEADER.findall(body))
        return cls(name, body, int(header.get("oldest", "0")), header.get("transaction") != "none")


def migrations() -> list[str]:
    """Names of all migrations, in order."""
    folder = files(__package__) / "sql" / "migrations"
    return sorted(match[1] for entry in folder.iterdir() if (match := _FILE.match(entry.name)))


def migrate(url: str) -> list[str]:
    """Apply missing migrations and install this version's functions; return the names applied."""
    try:
        connection = psycopg.connect(url, autocommit=True, application_name="queenspark migrate")
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(f"cannot connect to the database: {error}") from error
    except psycopg.ProgrammingError:
        # libpq quotes the part that it does not understand, which may be the password.
        raise StoreError(
            "QUEENSPARK_DATABASE_URL is not a valid libpq URL: use"
            " postgresql://user:password@host:port/database, with special characters of the password"
            " percent-encoded, such as %25 for %"
        ) from None
    with connection, turn(connection):
        try:
            return _migrate(connection)
        except psycopg.errors.InsufficientPrivilege as error:
            raise StoreError(
                f"the database has to be migrated, and the role {connection.info.user} may not do it:"
                " run `queenspark migrate` as the owner of the database"
            ) from error


@contextmanager
def turn(connection: psycopg.Connection) -> Iterator[None]:
    """Hold the migration lock: one process migrates at a time.

    The lock is polled instead of waited for: a waiting statement holds a snapshot, which would block a CREATE
    INDEX CONCURRENTLY of the lock's holder.
    """
    while True:
        row = connection.execute("SELECT pg_try_advisory_lock(%s)", (_LOCK,)).fetchone()
        if row is not None and row[0]:
            break
        time.sleep(_PAUSES[0])
    try:
        yield
    finally:
        if not connection.closed:
            connection.execute("SELECT pg_advisory_unlock(%s)", (_LOCK,))


def _migrate(connection: psycopg.Connection) -> list[str]:
    known = migrations()
    level = int(known[-1][:4])
    with connection.transaction():
        done = _applied(connection)
    oldest = _oldest(connection) if "0003_upgrades" in done else 0
    if oldest > level:
        raise SchemaTooNew(
            f"the database needs a version of queenspark that knows migration {oldest:04d}, and this one"
            f" ends with {known[-1]}; upgrade queenspark"
        )
    applied = [name for name in known if name not in done]
    for name in applied:
        apply(connection, Migration.read(name))
    with connection.transaction():
        if install_functions(connection, level):
            applied.append("functions")
        drop_functions_below(connection, _oldest(connection))
    # In its own transaction: an earlier one may have a lower id than pushes that are already ordered.
    connection.execute(sql.SQL("SET search_path = {}").format(sql.Identifier(FUNCTION_SET)))
    connection.execute("SELECT check_generation()")
    return applied


def _applied(connection: psycopg.Connection) -> set[str]:
    # CREATE SCHEMA IF NOT EXISTS fails for a role without CREATE, even if the schema exists.
    row = connection.execute("SELECT to_regclass('queenspark.migrations') IS NULL").fetchone()
    if row is not None and row[0]:
        _begin(connection)
    return {str(row[0]) for row in connection.execute("SELECT name FROM queenspark.migrations").fetchall()}


def _begin(connection: psycopg.Connection) -> None:
    connection.execute("CREATE SCHEMA IF NOT EXISTS queenspark")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS queenspark.migrations"
        " (name text PRIMARY KEY, checksum text, applied_at timestamptz NOT NULL DEFAULT clock_timestamp())"
    )


def _oldest(connection: psycopg.Connection) -> int:
    row = connection.execute("SELECT oldest FROM queenspark.system").fetchone()
    return 0 if row is None else int(row[0])


def apply(connection: psycopg.Connection, migration: Migration) -> None:
    """Apply one migration, retrying while others hold its locks."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    for pause in _pauses():
        try:
            if not migration.is_transaction:
                for statement in filter(str.strip, _END_OF_STATEMENT.split(migration.text)):
                    connection.execute(sql.SQL(statement))
            with connection.transaction():
                connection.execute(f"SET LOCAL lock_timeout = '{int(LOCK_SECONDS * 1000)}ms'")
                if migration.is_transaction:
                    connection.execute(sql.SQL(migration.text))
                connection.execute("INSERT INTO queenspark.migrations (name) VALUES (%s)", (migration.name,))
                if migration.oldest:
                    connection.execute(
                        "UPDATE queenspark.system SET oldest = greatest(oldest, %s)", (migration.oldest,)
                    )
            return
        except psycopg.errors.LockNotAvailable as error:
            if time.monotonic() > deadline:
                raise DatabaseBusy(
                    f"migration {migration.name} got no lock within {PATIENCE_SECONDS:.0f} s: a long"
                    " transaction holds a table of queenspark; end it (see pg_stat_activity), then try again"
                ) from error
            time.sleep(pause)


def _pauses() -> Iterator[float]:
    yield from _PAUSES
    while True:
        yield _PAUSES[-1]
