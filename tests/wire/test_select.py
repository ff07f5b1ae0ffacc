"""A SELECT over HTTP: a temporary job whose rows come as lines, and that goes with its reader."""

import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import httpx2
import psycopg
import pytest

from queenspark.broker.sql.rows import HEARTBEAT_SECONDS
from queenspark.embedded import EmbeddedPostgres
from tests.conftest import StartBroker
from tests.wire.api import Api
from tests.wire.sql import Sql


def wait_until(is_so: Callable[[], bool], seconds: float = 20) -> None:
    """Wait for a state."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it did not become so"
        time.sleep(0.02)


def queue_of(sql: Sql, source: str) -> str:
    """The queue of the SELECT that reads a source."""
    found: list[str] = []

    def is_there() -> bool:
        found[:] = [
            queue for queue in sql.temporary_queues() if sql.body(queue)["sources"][0]["queue"] == source
        ]
        return bool(found)

    wait_until(is_there)
    return found[0]


def is_gone(sql: Sql, queue: str) -> bool:
    """Whether a SELECT was cleaned up completely."""
    rows = sql.run("SELECT 1 FROM queenspark.queues WHERE name = %s", queue)
    return not rows and queue not in sql.temporary_queues()


def test_rows_come_as_arrays_in_the_order_of_the_log(sql: Sql, orders: str) -> None:
    with sql.select(f"SELECT country, amount AS a FROM {orders} LIMIT 3") as lines:
        assert next(lines) == {
            "columns": [{"name": "country", "type": "string"}, {"name": "a", "type": "bigint"}]
        }
        queue = queue_of(sql, orders)
        sql.emit(queue, '{"a":1,"country":"DE"}', '{"country":null,"a":12345678901234567890}')
        assert next(lines) == ["DE", 1]
        assert next(lines) == [None, 12345678901234567890]
        sql.emit(
            queue, '{"country":"x","a":3,"more":1}', '{"country":"beyond the limit","a":4}', partition="p2"
        )
        assert list(lines) == [["x", 3]]
    wait_until(lambda: is_gone(sql, queue))


def test_values_are_sent_unchanged_in_the_payload(sql: Sql, orders: str) -> None:
    with sql.api.http.stream(
        "POST", "/api/v1/sql", json={"sql": f"SELECT amount * 1.10 AS a, country FROM {orders} LIMIT 1"}
    ) as response:
        lines = response.iter_lines()
        next(lines)
        sql.emit(queue_of(sql, orders), '{"a": 5.50, "country": "é\\u0041"}')
        assert next(lines) == '[5.50,"é\\u0041"]'


def test_the_whole_payload_is_one_column(sql: Sql, orders: str) -> None:
    with sql.select(f"SELECT * FROM {orders} LIMIT 1") as lines:
        assert next(lines) == {"columns": [{"name": "payload", "type": "json"}]}
        sql.emit(queue_of(sql, orders), '{"a": {"b": [1]}}')
        assert list(lines) == [[{"a": {"b": [1]}}]]


def test_a_select_ends_at_its_timeout(sql: Sql, orders: str) -> None:
    began = time.monotonic()
    with sql.select(f"SELECT country FROM {orders}", timeout=600) as lines:
        next(lines)
        queue = queue_of(sql, orders)
        assert list(lines) == []
    assert 0.5 < time.monotonic() - began < 10
    wait_until(lambda: is_gone(sql, queue))


def test_a_select_ends_at_its_timeout_also_while_rows_come(sql: Sql, orders: str) -> None:
    over = threading.Event()

    def emit(queue: str) -> None:
        with suppress(psycopg.Error):
            while not over.is_set():
                sql.emit(queue, '{"country":"DE"}')

    with sql.select(f"SELECT country FROM {orders}", timeout=1500) as lines:
        next(lines)
        writer = threading.Thread(target=emit, args=[queue_of(sql, orders)])
        writer.start()
        assert list(lines)
        over.set()
        writer.join()


def test_without_time_a_select_gives_its_columns(sql: Sql, orders: str) -> None:
    body = {"sql": f"SELECT country FROM {orders}", "timeout": 0}
    response = sql.api.http.post("/api/v1/sql", json=body)
    assert response.headers["content-type"] == "application/x-ndjson"
    assert response.text == '{"columns":[{"name":"country","type":"string"}]}\n'


def test_its_queue_and_job_are_hidden_and_closed(sql: Sql, orders: str) -> None:
    with sql.select(f"SELECT country FROM {orders}") as lines:
        next(lines)
        queue = queue_of(sql, orders)
        name = queue.rpartition("/")[2]
        assert sql.api.read("/api/v1/resources/queues", search=name)["total"] == 0
        assert sql.api.read("/api/v1/jobs", search=name)["total"] == 0
        assert sql.api.push_items([{"queue": queue, "payload": 1}]).status_code == 400
        assert name not in str(sql.one("SHOW STREAMS")) + str(sql.one("SHOW QUEUES"))
        assert sql.refused(f"EXPLAIN SELECT * FROM `{queue}`")[0].startswith("there is no stream")
    wait_until(lambda: is_gone(sql, queue))


def test_a_client_that_leaves_ends_its_job(sql: Sql, orders: str) -> None:
    with sql.select(f"SELECT country FROM {orders}") as lines:
        next(lines)
        queue = queue_of(sql, orders)
    wait_until(lambda: is_gone(sql, queue))


def test_a_reader_that_stays_renews_its_job(sql: Sql, orders: str) -> None:
    with sql.select(f"SELECT country FROM {orders}") as lines:
        next(lines)
        queue = queue_of(sql, orders)
        stream_id, _, _ = sql.stream(queue)
        expiry = "SELECT expires_at FROM queenspark.streams WHERE id = %s"
        ((first,),) = sql.run(expiry, stream_id)
        wait_until(lambda: sql.run(expiry, stream_id)[0][0] > first)
        assert queue in sql.temporary_queues()


def test_the_job_of_a_broker_that_died_expires(module_broker: StartBroker, tag: str) -> None:
    dying = module_broker()
    with Api(dying.url, dying.database_url) as api:
        sql = Sql(api)
        api.push(f"q_{tag}", {"a": 1})
        with sql.select(f"SELECT a FROM q_{tag}") as lines:
            next(lines)
            queue = queue_of(sql, f"q_{tag}")
            dying.process.send_signal(signal.SIGKILL)
            with pytest.raises(httpx2.TransportError):
                next(lines)
    assert not is_gone(sql, queue)
    sql.run("UPDATE queenspark.streams SET expires_at = now() WHERE expires_at IS NOT NULL")
    module_broker()
    wait_until(lambda: is_gone(sql, queue))


def test_a_broker_that_stops_ends_its_selects(module_broker: StartBroker, tag: str) -> None:
    stopping = module_broker()
    with Api(stopping.url, stopping.database_url) as api:
        sql = Sql(api)
        api.push(f"q_{tag}", {"a": 1})
        with sql.select(f"SELECT a FROM q_{tag}") as lines:
            next(lines)
            stopping.process.send_signal(signal.SIGTERM)
            assert list(lines) == [
                {"error": "the broker is stopping; run the query again", "code": "unavailable"}
            ]


def test_an_empty_line_comes_every_few_seconds_without_rows(sql: Sql, orders: str) -> None:
    body = {"sql": f"SELECT country FROM {orders}", "timeout": 2.4 * HEARTBEAT_SECONDS * 1000}
    with sql.api.http.stream("POST", "/api/v1/sql", json=body) as response:
        columns, *rest = response.iter_lines()
    assert columns.startswith('{"columns"')
    assert rest == ["", ""]


def test_a_failed_query_says_so_in_its_last_line(sql: Sql, orders: str) -> None:
    with sql.select(f"SELECT country FROM {orders}") as lines:
        next(lines)
        sql.fail(queue_of(sql, orders), "out of order")
        assert list(lines) == [{"error": "out of order", "code": "failed"}]


def test_a_query_without_its_database_says_so_in_its_last_line(
    broker: StartBroker, durable_postgres: EmbeddedPostgres
) -> None:
    started = broker(database_url=durable_postgres.url)
    with Api(started.url, started.database_url) as api:
        api.push("q", {"a": 1})
        with Sql(api).select("SELECT a FROM q") as lines:
            next(lines)
            durable_postgres.stop()
            (last,) = lines
            assert (last["code"], last["retryable"]) == ("unavailable", True)


def test_a_query_whose_source_is_dropped_ends(sql: Sql, orders: str, tag: str) -> None:
    sql(f"CREATE STREAM j_{tag} AS SELECT country FROM {orders}")
    with sql.select(f"SELECT country FROM j_{tag}") as lines:
        next(lines)
        queue_of(sql, f"j_{tag}")
        assert sql.one(f"DROP STREAM j_{tag}")["dropped"] == [f"j_{tag}"]
        (last,) = lines
        assert last["code"] == "dropped"


def test_an_invalid_select_is_an_error_response(sql: Sql, orders: str) -> None:
    message, line, column = sql.refused(f"SELECT no,\n COUNT(*) FROM {orders} GROUP BY nothing")
    assert message.startswith("nothing is not in the newest messages")
    assert (line, column) == (2, len(f" COUNT(*) FROM {orders} GROUP BY n"))


def test_many_rows_come_through(sql: Sql, orders: str) -> None:
    with sql.select(f"SELECT amount FROM {orders} LIMIT 2500") as lines:
        next(lines)
        queue = queue_of(sql, orders)
        sql.emit(queue, '{"amount":-1}')
        sql.run(
            "INSERT INTO queenspark.messages"
            " (txid, id, partition_id, created_at, queue_id, transaction_id, payload)"
            " SELECT pg_current_xact_id()::text::bigint, nextval('queenspark.message_blocks') * 1000,"
            " m.partition_id, now(), m.queue_id, n::text, '{\"amount\":' || n || '}'"
            " FROM generate_series(1, 2499) n, queenspark.messages m WHERE m.queue_id = %s",
            sql.stream(queue)[1],
        )
        assert [row[0] for row in lines] == [-1, *range(1, 2500)]
