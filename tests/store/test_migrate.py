"""Migrations: once each, the sum is the schema, and a restored log continues in a new generation."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from queenspark.store.errors import DatabaseBusy, DatabaseUnavailable
from queenspark.store.functions import FUNCTION_SET
from queenspark.store.migrate import Migration, SchemaTooNew, apply, migrate, migrations, turn
from queenspark.store.queries import text
from tests.store.desk import Desk

pytestmark = pytest.mark.every_postgres

CATALOG = {
    "columns": """SELECT table_name, column_name, data_type, is_nullable, column_default, collation_name,
               ordinal_position, generation_expression
        FROM information_schema.columns WHERE table_schema = 'queenspark' AND table_name <> 'migrations'""",
    "indexes": """SELECT indexname, indexdef FROM pg_indexes
        WHERE schemaname = 'queenspark' AND tablename <> 'migrations'""",
    "constraints": """SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace = 'queenspark'::regnamespace
          AND conrelid::regclass::text <> 'queenspark.migrations'""",
    "options": """SELECT relname, reloptions::text FROM pg_class
        WHERE relnamespace = 'queenspark'::regnamespace AND relkind = 'r'""",
    "functions": """SELECT oid::regprocedure::text, prosrc, proconfig::text FROM pg_proc
        WHERE pronamespace = 'queenspark'::regnamespace""",
    "triggers": """SELECT pg_get_triggerdef(t.oid) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
        WHERE c.relnamespace = 'queenspark'::regnamespace AND NOT t.tgisinternal""",
}


def catalog(url: str) -> dict[str, set[tuple[Any, ...]]]:
    """The objects of a database's schema."""
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


def test_a_version_runs_on_a_newer_schema_that_allows_it(database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("INSERT INTO queenspark.migrations (name) VALUES ('9999_future')")
    assert migrate(database) == []


def test_a_version_below_the_oldest_allowed_is_refused(database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("UPDATE queenspark.system SET oldest = 9999")
    with pytest.raises(SchemaTooNew, match=r"migration 9999, and this one ends with \d{4}_\w+; upgrade"):
        migrate(database)


def test_functions_of_other_versions_stay_until_these_may_no_longer_run(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        for name, level in (("queenspark_older", 2), ("queenspark_newer", 9999)):
            connection.execute(f"CREATE SCHEMA {name}")
            connection.execute(f"CREATE FUNCTION {name}.pop() RETURNS integer LANGUAGE sql RETURN 1")
            connection.execute("INSERT INTO queenspark.function_sets VALUES (%s, %s)", (name, level))
        connection.execute(f"DROP SCHEMA {FUNCTION_SET} CASCADE")
        assert migrate(database) == ["functions"]
        assert connection.execute("SELECT queenspark_older.pop(), queenspark_newer.pop()").fetchone()
        connection.execute("UPDATE queenspark.system SET oldest = 3")
        migrate(database)
        assert connection.execute("SELECT queenspark_newer.pop()").fetchone()
        assert connection.execute("SELECT to_regnamespace('queenspark_older')").fetchone() == (None,)


def test_a_migration_waits_briefly_for_a_lock_and_is_tried_again(
    empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statement that waits for a table lock blocks all later ones."""
    migrate(empty_database)
    monkeypatch.setattr("queenspark.store.migrate.LOCK_SECONDS", 0.05)
    change = Migration("9999_test", "ALTER TABLE queenspark.places ADD COLUMN test integer", 0, True)
    with psycopg.connect(empty_database) as busy, psycopg.connect(empty_database, autocommit=True) as own:
        busy.execute("SELECT 1 FROM queenspark.places")
        with ThreadPoolExecutor() as pool:
            applying = pool.submit(apply, own, change)
            with psycopg.connect(empty_database) as reader:
                reader.execute("SET statement_timeout = '10s'")
                reader.execute("SELECT 1 FROM queenspark.places")
            assert not applying.done()
            busy.rollback()
            applying.result(timeout=30)
        assert own.execute("SELECT test FROM queenspark.places").fetchall() == []


def test_a_migration_that_never_gets_its_lock_says_why(
    empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate(empty_database)
    monkeypatch.setattr("queenspark.store.migrate.LOCK_SECONDS", 0.01)
    monkeypatch.setattr("queenspark.store.migrate.PATIENCE_SECONDS", 0.1)
    change = Migration("9999_test", "ALTER TABLE queenspark.places ADD COLUMN test integer", 0, True)
    with psycopg.connect(empty_database) as busy, psycopg.connect(empty_database, autocommit=True) as own:
        busy.execute("SELECT 1 FROM queenspark.places")
        with pytest.raises(DatabaseBusy, match="9999_test got no lock within"):
            apply(own, change)
    assert "9999_test" not in applied_to(empty_database)


def test_an_index_is_built_while_others_wait_to_migrate(empty_database: str) -> None:
    """Waiting processes must not hold a snapshot that the index build would wait for."""
    migrate(empty_database)
    index = Migration(
        "9999_test",
        "DROP INDEX CONCURRENTLY IF EXISTS queenspark.test;\n"
        "CREATE INDEX CONCURRENTLY test ON queenspark.messages (trace_id);\n",
        0,
        False,
    )
    with psycopg.connect(empty_database, autocommit=True) as own, ThreadPoolExecutor() as pool:
        with turn(own):
            waiting = pool.submit(migrate, empty_database)
            apply(own, index)
            assert not waiting.done()
        assert waiting.result(timeout=30) == []
    assert "9999_test" in applied_to(empty_database)


def migrate_before(url: str, name: str) -> None:
    """Bring a database to where a version without that migration and the later ones leaves it."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA queenspark")
        connection.execute(
            "CREATE TABLE queenspark.migrations (name text PRIMARY KEY, checksum text,"
            " applied_at timestamptz NOT NULL DEFAULT clock_timestamp())"
        )
        for each in migrations():
            if each < name:
                apply(connection, Migration.read(each))


def test_dropped_records_of_sessions_are_taken_along(empty_database: str) -> None:
    migrate_before(empty_database, "0006_formats")
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO queenspark.definitions (stream_id, version, body) VALUES"
            """ (1, 1, '{"spec": {"kind": "session"}}'), (1, 1, NULL),"""
            """ (2, 1, '{"spec": {"kind": "tumbling"}}')"""
        )
        connection.execute(
            "INSERT INTO queenspark.stream_late"
            " (stream_id, version, key, txid, id, time_us, closed_us, dropped) VALUES"
            " (1, 1, 'k', 3, 4, 0, 0, true), (1, 1, 'k', 3, 4, 0, 0, true), (1, 1, 'k', 5, 6, 0, 0, false),"
            " (2, 1, 'k', 7, 8, 0, 0, true)"
        )
        migrate(empty_database)
        found = connection.execute("SELECT stream_id, version, key, txid, id FROM queenspark.stream_dropped")
        assert found.fetchall() == [(1, 1, "k", 3, 4)]


def applied_to(url: str) -> set[str]:
    """The names of the migrations that a database has."""
    with psycopg.connect(url) as connection:
        return {row[0] for row in connection.execute("SELECT name FROM queenspark.migrations")}


def test_an_unreachable_database_is_one_clear_error() -> None:
    with pytest.raises(DatabaseUnavailable, match="cannot connect"):
        migrate("postgresql://127.0.0.1:1/nothing?connect_timeout=1")


@pytest.mark.anyio
async def test_a_restored_log_continues_above_its_last_position(desk: Desk) -> None:
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
    desk.run(f"DROP SCHEMA {FUNCTION_SET} CASCADE")
    with desk.connect() as pushing:
        pushing.execute("SELECT pg_current_xact_id()")
        migrating = asyncio.create_task(asyncio.to_thread(migrate, desk.store.database.url))
        await asyncio.wait({migrating}, timeout=1)
        pushing.rollback()
    await desk.push("b")
    await migrating
    await desk.push("c")
    migrate(desk.store.database.url)
    assert desk.run("SELECT generation FROM queenspark.system") == [(0,)]
