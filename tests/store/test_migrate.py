"""Migrations: once each, the sum is the schema, and a restored log goes on in a new generation."""

import asyncio
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from queenspark.store.errors import DatabaseUnavailable
from queenspark.store.migrate import SchemaTooNew, migrate, migrations
from queenspark.store.queries import text
from tests.store.desk import Desk

pytestmark = pytest.mark.every_postgres

CATALOG = {
    "columns": """SELECT table_name, column_name, data_type, is_nullable, column_default, collation_name,
               ordinal_position
        FROM information_schema.columns WHERE table_schema = 'queenspark' AND table_name <> 'migrations'""",
    "indexes": """SELECT indexname, indexdef FROM pg_indexes
        WHERE schemaname = 'queenspark' AND tablename <> 'migrations'""",
    "constraints": """SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace = 'queenspark'::regnamespace
          AND conrelid::regclass::text <> 'queenspark.migrations'""",
    "options": """SELECT relname, reloptions::text FROM pg_class
        WHERE relnamespace = 'queenspark'::regnamespace AND relkind = 'r'""",
}


def catalog(url: str) -> dict[str, set[tuple[Any, ...]]]:
    """What the schema of a database is made of."""
    with psycopg.connect(url) as connection:
        return {name: set(connection.execute(query).fetchall()) for name, query in CATALOG.items()}


@pytest.fixture
def empty_database(database: str) -> Iterator[str]:
    """A database without any schema, on the same server."""
    name = f"empty_{uuid4().hex}"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE template0')
    yield make_conninfo("", **{**conninfo_to_dict(database), "dbname": name})
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def test_the_sum_of_the_migrations_is_the_schema(database: str, empty_database: str) -> None:
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute(text("schema.sql"))
    expected, found = catalog(empty_database), catalog(database)
    for name in CATALOG:
        if name == "options":
            found[name] = {row for row in found[name] if row[0] != "migrations"}
        assert found[name] == expected[name]


def test_migrating_twice_changes_nothing(empty_database: str) -> None:
    assert migrate(empty_database) == [*migrations(), "functions"]
    assert migrate(empty_database) == []


def test_a_newer_schema_is_refused(database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("INSERT INTO queenspark.migrations (name) VALUES ('9999_future')")
    with pytest.raises(SchemaTooNew, match="9999_future"):
        migrate(database)


def test_an_unreachable_database_is_one_clear_error() -> None:
    with pytest.raises(DatabaseUnavailable, match="cannot connect"):
        migrate("postgresql://127.0.0.1:1/nothing?connect_timeout=1")


@pytest.mark.anyio
async def test_a_restored_log_goes_on_above_what_it_had(desk: Desk) -> None:
    """A dump restored elsewhere: the log has higher transaction ids than the server hands out."""
    await desk.push("a", "b")
    batch = await desk.pop(1)
    assert batch is not None
    await desk.ack(batch)
    far = 1 << 40
    desk.run("UPDATE queenspark.messages SET txid = txid + %s", far)
    desk.run(
        "UPDATE queenspark.places SET cursor_txid = cursor_txid + %s, end_txid = end_txid + %s", far, far
    )
    desk.run("UPDATE queenspark.groups SET seen_txid = seen_txid + %s", far)
    assert await desk.pop() is None, "without a new generation nothing would ever be readable"
    migrate(desk.store.database.url)
    await desk.push("c")
    assert await desk.popped(1) == ["b"]
    assert await desk.popped() == ["c"]
    migrate(desk.store.database.url)
    assert desk.run("SELECT generation FROM queenspark.system") == [(1,)], "once is enough"


@pytest.mark.anyio
async def test_migrating_while_pushes_go_on_starts_no_new_generation(desk: Desk) -> None:
    await desk.push("a")
    desk.run("UPDATE queenspark.migrations SET checksum = 'old' WHERE name = 'functions'")
    with desk.connect() as pushing:
        pushing.execute("SELECT queenspark.current_txid()")
        migrating = asyncio.create_task(asyncio.to_thread(migrate, desk.store.database.url))
        await asyncio.wait({migrating}, timeout=1)
        pushing.rollback()
    await desk.push("b")
    await migrating
    await desk.push("c")
    migrate(desk.store.database.url)
    assert desk.run("SELECT generation FROM queenspark.system") == [(0,)]
