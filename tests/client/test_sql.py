"""SQL through the client: results of statements, streamed rows of a SELECT, errors with their position."""

import asyncio
import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from uuid import uuid4

import pytest

from queenspark import AsyncQueen, Queen, QueenError, SqlColumn, SqlError, Unreachable
from queenspark.broker.sql.rows import HEARTBEAT_SECONDS
from queenspark.client.aio import transport as aio_transport
from queenspark.client.sync import transport
from tests.broker_process import Broker
from tests.client.proxy import CUT_AFTER, Fault, Proxy
from tests.conftest import StartBroker
from tests.wire.api import Api
from tests.wire.deadline import eventually
from tests.wire.sql import Sql


@pytest.fixture
def sql(api: Api) -> Sql:
    """The broker's SQL, and a stand-in for the pipeline."""
    return Sql(api)


@pytest.fixture
def clicks(queen: Queen) -> Iterator[str]:
    """A stream over a queue."""
    name = f"clicks_{uuid4().hex[:10]}"
    queen.sql(
        f"CREATE STREAM {name} (page STRING, at TIMESTAMP, price DECIMAL(20, 2), n DOUBLE)"
        f" WITH (queue = '{name}')"
    )
    yield name
    queen.sql(f"DROP STREAM {name} CASCADE")


def emit(sql: Sql, *payloads: str) -> str:
    """Push rows as the only SELECT's job does, once it is there; the name of its queue."""
    eventually(lambda: len(sql.temporary_queues()) == 1)
    (queue,) = sql.temporary_queues()
    sql.emit(queue, *payloads)
    return queue


def ended(sql: Sql) -> None:
    """Wait until no SELECT is running."""
    eventually(lambda: not sql.temporary_queues())


def test_statements_give_a_result_each(queen: Queen, clicks: str) -> None:
    results = queen.sql(
        f"CREATE STREAM pages_{clicks} AS SELECT page FROM {clicks}; PAUSE JOB pages_{clicks};"
        f"INSERT INTO {clicks} VALUES ('home', NULL, NULL, NULL), ('cart', NULL, 1.5, 2)"
    )
    made, paused, inserted = results.results
    assert (made.kind, made.name, made.version, made.changed) == (
        "create_stream", f"pages_{clicks}", 1, True,
    )  # fmt: skip
    assert made.statement == f"CREATE STREAM pages_{clicks} AS SELECT page FROM {clicks}"
    assert (paused.kind, paused.changed) == ("pause_job", True)
    assert (inserted.kind, inserted.count) == ("insert", 2)
    assert len(queen.queue(clicks).batch(10).pop(wait=10)) == 2


def test_rows_of_a_statement_are_read_by_the_names_of_its_columns(queen: Queen, clicks: str) -> None:
    results = queen.sql(f"DESCRIBE {clicks}")
    assert results.columns == [SqlColumn("column", "string"), SqlColumn("type", "string")]
    assert [row["column"] for row in results] == ["page", "at", "price", "n"]
    assert [row["type"] for row in results][:2] == ["string", "timestamp"]


def test_a_dry_run_changes_nothing(queen: Queen, clicks: str) -> None:
    statement = f"CREATE STREAM pages_{clicks} AS SELECT page FROM {clicks}"
    assert queen.sql(statement, dry_run=True).results[0].changed
    assert queen.sql(statement).results[0].changed


def test_rows_of_a_select_come_one_by_one_in_pythons_types(queen: Queen, sql: Sql, clicks: str) -> None:
    with queen.sql(f"SELECT page, at, price, n FROM {clicks}") as results:
        assert [column.type for column in results.columns] == [
            "string",
            "timestamp",
            "decimal(20, 2)",
            "double",
        ]
        assert results.results == []
        rows = iter(results)
        queue = emit(
            sql,
            '{"page": "a", "at": "2026-01-31T12:00:00.000000Z", "price": 123456789012345678.90, "n": 1.5}',
        )
        assert next(rows) == {
            "page": "a", "at": datetime(2026, 1, 31, 12, tzinfo=UTC),
            "price": Decimal("123456789012345678.90"), "n": 1.5,
        }  # fmt: skip
        sql.emit(queue, '{"page": null, "at": null, "price": 7, "n": "Infinity"}')
        assert next(rows) == {"page": None, "at": None, "price": Decimal(7), "n": float("inf")}
    ended(sql)
    with pytest.raises(QueenError, match="already read"):
        list(results)


def test_leaving_the_loop_ends_the_query(queen: Queen, sql: Sql, clicks: str) -> None:
    results = queen.sql(f"SELECT page FROM {clicks}")
    emit(sql, '{"page": "a"}', '{"page": "b"}')
    for row in results:
        assert row == {"page": "a"}
        break
    ended(sql)


def test_a_select_ends_at_its_limit_and_after_its_timeout(queen: Queen, sql: Sql, clicks: str) -> None:
    results = queen.sql(f"SELECT page FROM {clicks} LIMIT 2")
    emit(sql, '{"page": "a"}', '{"page": "b"}', '{"page": "c"}')
    assert [row["page"] for row in results] == ["a", "b"]
    assert list(queen.sql(f"SELECT page FROM {clicks}", timeout="50ms")) == []
    ended(sql)


def test_an_invalid_statement_has_a_position(queen: Queen, clicks: str) -> None:
    with pytest.raises(SqlError, match=r"did you mean page\?") as caught:
        queen.sql(f"SELECT\n  pgae FROM {clicks}")
    assert (caught.value.line, caught.value.column, caught.value.code) == (2, 3, "sql_error")


def test_a_query_that_fails_raises_its_error(queen: Queen, sql: Sql, clicks: str) -> None:
    results = queen.sql(f"SELECT page FROM {clicks}")
    queue = emit(sql, '{"page": "a"}')
    rows = iter(results)
    assert next(rows) == {"page": "a"}
    sql.fail(queue, "it does not work")
    with pytest.raises(SqlError, match="it does not work") as caught:
        next(rows)
    assert (caught.value.line, caught.value.code) == (None, "failed")
    ended(sql)


def test_statements_are_not_sent_twice(far: Queen, proxy: Proxy, clicks: str) -> None:
    proxy.fail("POST /api/v1/sql", CUT_AFTER)
    with pytest.raises(Unreachable) as caught:
        far.sql(f"INSERT INTO {clicks} VALUES ('home', NULL, NULL, NULL)")
    assert caught.value.maybe_done
    assert proxy.count("POST /api/v1/sql") == 1


def test_an_interrupted_select_is_not_retried(far: Queen, proxy: Proxy, clicks: str) -> None:
    proxy.fail("POST /api/v1/sql", Fault(truncate=300))
    with pytest.raises(Unreachable, match="closed the connection"):
        list(far.sql(f"SELECT page FROM {clicks}"))
    assert proxy.count("POST /api/v1/sql") == 1


def test_silence_is_no_failure_of_a_select(shared_broker: Broker, sql: Sql, clicks: str) -> None:
    with Queen(shared_broker.url, timeout=0.5) as queen:
        assert list(queen.sql(f"SELECT page FROM {clicks}", timeout=1.5)) == []
    ended(sql)


def test_the_asynchronous_client_reads_rows_too(shared_broker: Broker, sql: Sql, clicks: str) -> None:
    async def main() -> None:
        async with AsyncQueen(shared_broker.url) as queen:
            results = await queen.sql(f"SELECT page FROM {clicks}")
            await asyncio.to_thread(emit, sql, '{"page": "a"}', '{"page": "b"}')
            async for row in results:
                assert row == {"page": "a"}
                break
            await asyncio.to_thread(ended, sql)
            async with await queen.sql(f"SELECT page FROM {clicks}") as results:
                pass
            await asyncio.to_thread(ended, sql)
            described = [row["column"] async for row in await queen.sql(f"DESCRIBE {clicks}")]
            assert described == ["page", "at", "price", "n"]

    asyncio.run(main())


def test_a_quiet_select_is_not_taken_for_a_lost_broker(
    queen: Queen, sql: Sql, clicks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "SILENCE_SECONDS", 1.5 * HEARTBEAT_SECONDS)
    assert list(queen.sql(f"SELECT page FROM {clicks}", timeout=f"{2.2 * HEARTBEAT_SECONDS}s")) == []
    ended(sql)


def test_a_broker_that_vanished_is_noticed(broker: StartBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "SILENCE_SECONDS", 0.5)
    monkeypatch.setattr(aio_transport, "SILENCE_SECONDS", 0.5)
    frozen = broker()
    with Queen(frozen.url) as queen:
        queen.queue("q").push({"a": 1})
        results = queen.sql("SELECT a FROM q")
        frozen.process.send_signal(signal.SIGSTOP)
        try:
            with pytest.raises(Unreachable, match="stopped sending"):
                list(results)
        finally:
            frozen.process.send_signal(signal.SIGCONT)

    async def read() -> None:
        async with AsyncQueen(frozen.url) as queen:
            results = await queen.sql("SELECT a FROM q")
            frozen.process.send_signal(signal.SIGSTOP)
            try:
                with pytest.raises(Unreachable, match="stopped sending"):
                    [row async for row in results]
            finally:
                frozen.process.send_signal(signal.SIGCONT)

    asyncio.run(read())


def test_a_broker_that_stops_says_so(broker: StartBroker) -> None:
    stopping = broker()
    with Queen(stopping.url) as queen:
        queen.queue("q").push({"a": 1})
        results = queen.sql("SELECT a FROM q")
        stopping.process.send_signal(signal.SIGTERM)
        with pytest.raises(SqlError, match="the broker is stopping; run the query again") as error:
            list(results)
        assert error.value.code == "unavailable"
