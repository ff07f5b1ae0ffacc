"""PostgreSQL servers of the tests, and fresh databases on them."""

import atexit
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path

import psycopg

from queenspark.embedded import EmbeddedPostgres
from queenspark.store.migrate import migrate

DEBIAN_15 = Path("/usr/lib/postgresql/15/bin")
TEMPLATE = "migrated"
QUICK = {"fsync": "off", "full_page_writes": "off", "shared_buffers": "128MB", "max_connections": "200"}
MEMORY = Path("/dev/shm")
ENOUGH_MEMORY = 4 * 1024**3  # bytes


class PostgresServer:
    """A running server with a migrated template, from which a fresh database is a copy away."""

    def __init__(self, postgres: EmbeddedPostgres) -> None:
        self.postgres = postgres
        self._numbers = count(1)
        self._execute(f"CREATE DATABASE {TEMPLATE}")
        migrate(postgres.url_of(TEMPLATE))

    @contextmanager
    def database(self) -> Iterator[str]:
        """The URL of a new, migrated, empty database, which is dropped afterwards."""
        name = f"test_{next(self._numbers)}"
        # Copying files takes a third of the time of logging each page, where nothing is synced.
        self._execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE} STRATEGY FILE_COPY")
        try:
            yield self.postgres.url_of(name)
        finally:
            self._execute(f"DROP DATABASE {name} WITH (FORCE)")

    def _execute(self, statement: str) -> None:
        with psycopg.connect(self.postgres.url, autocommit=True) as connection:
            connection.execute(statement.encode())


@cache
def _pristine(bin_dir: Path | None) -> Path:
    """A data folder as its first start leaves it, made once by each process."""
    folder = Path(tempfile.mkdtemp(prefix="queenspark-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with EmbeddedPostgres(folder, bin_dir=bin_dir):
        return folder


def prepare_data_dir(data_dir: Path, bin_dir: Path | None = None) -> None:
    """Fill a new data folder with a copy of a cluster: that takes a fraction of the time of `initdb`."""
    data_dir.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-a", _pristine(bin_dir) / "postgres", data_dir], check=True)


@cache
def _memory() -> Path | None:
    """The file system in memory, if it has room: there, a new database takes a fraction of the time."""
    has_room = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ENOUGH_MEMORY
    return MEMORY if has_room else None


@contextmanager
def temporary_postgres(
    *, bin_dir: Path | None = None, durable: bool, quiet: bool = False
) -> Iterator[EmbeddedPostgres]:
    """A server on a temporary folder; one that is not durable is quicker, and must not be killed.

    On a quiet one, only the tests have transactions: any other, in any database, may hold back the horizon,
    and a message that was just pushed could not be popped yet.
    """
    options = ({} if durable else QUICK) | ({"autovacuum": "off"} if quiet else {})
    # Not below pytest's own folder: pytest closes that to other users again and again.
    folder = Path(tempfile.mkdtemp(prefix="queenspark-test-", dir=None if durable else _memory()))
    try:
        prepare_data_dir(folder, bin_dir)
        with EmbeddedPostgres(folder, bin_dir=bin_dir, options=options) as postgres:
            yield postgres
    finally:
        shutil.rmtree(folder, ignore_errors=True)
