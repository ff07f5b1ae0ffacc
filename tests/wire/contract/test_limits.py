"""Limits: each has its status and a response that names the limit."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

import psycopg
import pytest

from tests.broker_process import Broker
from tests.conftest import StartBroker
from tests.postgres_servers import PostgresServer
from tests.wire.api import Api, refused
from tests.wire.raw_connection import RawConnection

SMALL: dict[str, Any] = {"max_body_bytes": 8192, "max_item_bytes": 1024, "max_batch": 10, "max_json_depth": 8}


@pytest.fixture(scope="module")
def small(postgres_18: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """The API of a broker with small limits."""
    log_file = tmp_path_factory.mktemp("small") / "broker.log"
    with postgres_18.database() as url:
        started = Broker(url, log_file, **SMALL)
        with Api(started.url) as api:
            yield api
        started.stop()


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_a_body_that_is_too_large_is_413(small: Api, queue: str) -> None:
    reason = refused(small.push_items([{"queue": queue, "payload": "x" * 9000}]), 413)
    assert "8192" in reason


def test_a_body_of_unknown_length_that_comes_at_once_and_is_too_large_is_413(small: Api) -> None:
    head = b"POST /api/v1/push HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"400\r\n" + b" " * 1024 + b"\r\n"
    with RawConnection(small.http.base_url.port or 0) as connection:
        connection.send(head + chunk * 20 + b"0\r\n\r\n")
        assert connection.status() == 413


def test_a_body_of_unknown_length_that_grows_too_large_is_413(small: Api) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(20):
            yield b" " * 1024

    response = small.http.post("/api/v1/push", content=chunks(), headers={"Content-Type": "application/json"})
    assert "8192" in refused(response, 413)


def test_a_payload_that_is_too_large_is_413(small: Api, queue: str) -> None:
    reason = refused(small.push_items([{"queue": queue, "payload": "x" * 1100}]), 413)
    assert "1024" in reason
    assert small.empty(queue)


def test_a_push_of_too_many_items_is_refused(small: Api, queue: str) -> None:
    items = [{"queue": queue, "payload": number} for number in range(11)]
    assert "10" in refused(small.push_items(items), 400)
    assert small.push_items(items[:10]).status_code == 201


def test_a_pop_of_too_many_messages_is_refused(small: Api, queue: str) -> None:
    assert "10" in refused(small.pop(queue, batch=11), 400)
    assert small.pop(queue, batch=10).status_code == 204


def test_a_call_with_too_many_acks_is_refused(small: Api) -> None:
    acks = [{"transactionId": str(number), "partitionId": "p"} for number in range(11)]
    assert "10" in refused(small.post("/api/v1/ack/batch", {"acknowledgments": acks}), 400)


def test_json_that_is_too_deep_is_refused(small: Api, queue: str) -> None:
    assert "8" in refused(small.push_items([{"queue": queue, "payload": nested(9)}]), 400)
    assert small.push_items([{"queue": queue, "payload": nested(3)}]).status_code == 201


def test_json_of_absurd_depth_is_refused(api: Api, queue: str) -> None:
    content = (
        b'{"items":[{"queue":"' + queue.encode() + b'","payload":' + b"[" * 200_000 + b"]" * 200_000 + b"}]}"
    )
    response = api.http.post("/api/v1/push", content=content, headers={"Content-Type": "application/json"})
    assert "deep" in refused(response, 400)


@pytest.mark.parametrize("name", ["x" * 5000, "nul \u0000", "bell \u0007", "two\nlines"])
@pytest.mark.parametrize("field", ["queue", "partition"])
def test_a_name_of_bad_length_or_characters_is_refused(api: Api, queue: str, field: str, name: str) -> None:
    item = {"queue": queue, "partition": "p", "payload": 1, field: name}
    assert field in refused(api.push_items([item]), 400).lower()


def test_an_empty_queue_name_is_refused(api: Api) -> None:
    assert "queue" in refused(api.push_items([{"queue": "", "payload": 1}]), 400).lower()


@pytest.mark.parametrize("name", ["x" * 5000, "bell \u0007"])
def test_a_group_name_of_bad_length_or_characters_is_refused(api: Api, queue: str, name: str) -> None:
    assert "consumergroup" in refused(api.pop(queue, consumerGroup=name), 400).lower()


def test_a_broker_with_all_connections_busy_returns_503_with_retry_after(
    broker: StartBroker, database: str, queue: str
) -> None:
    with (
        Api(broker(pool_size=2).url) as busy,
        psycopg.connect(database) as blocker,
        ThreadPoolExecutor(6) as threads,
    ):
        busy.push(queue, 1)
        blocker.execute("LOCK TABLE queenspark.groups, queenspark.messages IN ACCESS EXCLUSIVE MODE")
        calls = [threads.submit(busy.pop, queue, consumerGroup="g") for _ in range(6)]
        first = next(as_completed(calls)).result()
        blocker.rollback()
        assert {call.result().status_code for call in calls} <= {200, 204, 503}
    refused(first, 503)
    assert int(first.headers["retry-after"]) >= 1


def test_a_wait_longer_than_the_limit_is_cut_short(broker: StartBroker, queue: str) -> None:
    with Api(broker(max_wait_seconds=0.2).url) as api:
        assert api.pop(queue, wait="true", timeout=60_000).status_code == 204
