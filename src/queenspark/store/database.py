"""The connection pool, and the execution of the store's statements."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg import AsyncConnection, IsolationLevel
from psycopg.rows import dict_row, tuple_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from .errors import Conflict, DatabaseBusy, DatabaseUnavailable, FunctionsMissing, Refused, StoreError
from .functions import SEARCH_PATH
from .page import Page, Rows
from .queries import query

Params = Mapping[str, Any]

# Pushes and acks respond only once they are on disk. Our own transactions stay short: a long one would hold
# the horizon back for everyone.
OPTIONS = (
    f"{SEARCH_PATH} -c synchronous_commit=on -c timezone=UTC -c statement_timeout=60s "
    "-c idle_in_transaction_session_timeout=30s -c jit=off "
    "-c default_transaction_isolation=read\\ committed"
)


def translate(error: psycopg.Error) -> StoreError | None:
    """Map a database error to a store error, if there is one."""
    match error:
        case psycopg.errors.DeadlockDetected() | psycopg.errors.SerializationFailure():
            return Conflict("conflict with a concurrent request; try again")
        case psycopg.errors.UndefinedFunction():
            return FunctionsMissing(
                "this version's functions are not in the database: run `queenspark migrate`"
            )
        case psycopg.errors.QueryCanceled():
            return DatabaseBusy("a database statement exceeded its time limit; retry later")
        case psycopg.errors.DataError() | psycopg.errors.ProgramLimitExceeded():
            return Refused(f"a value cannot be stored: {error.diag.message_primary or error}")
        case psycopg.OperationalError() | psycopg.InterfaceError():
            return DatabaseUnavailable(f"the database is not available: {error}".strip())
        case _:
            return None


async def _begin(connection: AsyncConnection[Any]) -> None:
    """Check the generation: the database may have been restored before this connection."""
    await connection.execute("SELECT check_generation()")


class Database:
    """A pool of autocommit connections to one PostgreSQL database."""

    def __init__(self, url: str, pool_size: int = 16, pool_timeout: float = 5.0) -> None:
        self.url = url
        self.pool_size = pool_size
        self._pool = AsyncConnectionPool(
            url,
            min_size=min(4, pool_size),
            max_size=pool_size,
            timeout=pool_timeout,
            open=False,
            configure=_begin,
            kwargs={"autocommit": True, "options": OPTIONS, "application_name": "queenspark broker"},
        )

    async def open(self, seconds: float = 15.0) -> None:
        """Connect; raises DatabaseUnavailable after a timeout."""
        try:
            await self._pool.open(wait=True, timeout=seconds)
        except PoolTimeout as error:
            await self._pool.close()
            raise DatabaseUnavailable(f"cannot connect to the database: {error}") from error

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.close()

    def in_use(self) -> int:
        """The number of busy connections."""
        stats = self._pool.get_stats()
        return int(stats.get("pool_size", 0)) - int(stats.get("pool_available", 0))

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection[tuple[Any, ...]]]:
        """Check out a connection; database errors are raised as store errors."""
        try:
            async with self._pool.connection() as connection:
                yield connection
        except PoolTimeout as error:
            raise DatabaseBusy(
                "all database connections of this broker are busy; retry later, or raise QUEENSPARK_POOL_SIZE"
            ) from error
        except psycopg.Error as error:
            if (translated := translate(error)) is not None:
                raise translated from error
            raise

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[AsyncConnection[tuple[Any, ...]]]:
        """Run a repeatable-read transaction; fails when others change the same rows."""
        async with self.connection() as connection:
            await connection.set_isolation_level(IsolationLevel.REPEATABLE_READ)
            try:
                async with connection.transaction():
                    yield connection
            finally:
                if not connection.closed:
                    await connection.set_isolation_level(None)

    async def rows(self, name: str, params: Params | None = None) -> list[tuple[Any, ...]]:
        """Run a named statement and return its rows as tuples."""
        async with self.connection() as connection, connection.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute(query(name), params)
            return await cursor.fetchall()

    async def row(self, name: str, params: Params | None = None) -> tuple[Any, ...] | None:
        """Run a named statement and return its first row."""
        rows = await self.rows(name, params)
        return rows[0] if rows else None

    async def records(self, name: str, params: Params | None = None) -> list[dict[str, Any]]:
        """Run a named statement and return its rows as dictionaries."""
        async with self.connection() as connection, connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(query(name), params)
            return await cursor.fetchall()

    async def page(self, name: str, page: Page, /, **params: Any) -> Rows:
        """Run a named statement that adds the `total` of all pages to each row."""
        records = await self.records(name, {**params, **page.params()})
        first = records
        if not records and page.offset:
            first = await self.records(name, {**params, **page._replace(limit=1, offset=0).params()})
        total = int(first[0]["total"]) if first else 0
        for record in records:
            del record["total"]
        return records, total

    async def execute(self, name: str, params: Params | None = None) -> int:
        """Run a named statement and return the number of affected rows."""
        async with self.connection() as connection:
            return (await connection.execute(query(name), params)).rowcount


class OneConnection(Database):
    """An open connection as a database: all statements are part of its transaction."""

    def __init__(self, url: str, connection: AsyncConnection[tuple[Any, ...]]) -> None:
        self.url = url
        self.pool_size = 1
        self._connection = connection

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection[tuple[Any, ...]]]:
        """The given connection."""
        yield self._connection
