"""Callers without the right to read the system learn that no pipeline is leading."""

import asyncio
from collections.abc import Callable
from uuid import uuid4

import pytest

from queenspark import AsyncQueen, Queen
from queenspark.cli.broker_api import BrokerApi
from queenspark.cli.sql.hint import no_rows_hint
from queenspark.client.sync.lines import Lines
from tests.broker_process import Broker
from tests.database import connect
from tests.leader import leading
from tests.wire.api import Api, responded
from tests.wire.deadline import eventually

MakeKey = Callable[..., str]


@pytest.fixture(scope="module")
def us(admin: Api) -> str:
    """A namespace with the queue `orders` and the stream `visits`."""
    us = f"us{uuid4().hex[:8]}"
    admin.push(f"{us}.orders", {"n": 1})
    definition = {
        "name": "visits", "namespace": us, "source_queue_names": [f"{us}.orders"], "window_duration_ms": 1000,
    }  # fmt: skip
    responded(admin.post("/api/v1/stream/define", definition), 201)
    return us


def pipeline_seen(admin: Api, us: str) -> str | None:
    body = {"streamName": "visits", "namespace": us, "consumerGroup": "admin", "timeout": 0}
    response = admin.post("/api/v1/stream/poll", body)
    assert response.status_code == 204
    found: str | None = response.headers.get("Queenspark-Pipeline")
    return found


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "queenspark.client"]


def test_a_consumer_that_may_only_consume_warns_that_no_pipeline_is_leading(
    closed: Broker, key: MakeKey, admin: Api, us: str, caplog: pytest.LogCaptureFixture
) -> None:
    scoped = key("consumer", scopes=[f"stream:{us}/*:consume"])
    with Queen(closed.url, api_key=scoped) as queen:
        with leading(closed.database_url):
            eventually(lambda: pipeline_seen(admin, us) == "leading")
            assert queen.consumer("visits", "g").poll(wait=0) is None
            assert warnings(caplog) == []
        eventually(lambda: pipeline_seen(admin, us) == "none")
        queen.consumer("visits", "g").process(print, idle=0)
    (warning,) = warnings(caplog)
    assert warning.startswith("visits: waiting for windows, but no pipeline is leading")


def test_an_async_consumer_warns_too(
    closed: Broker, key: MakeKey, admin: Api, us: str, caplog: pytest.LogCaptureFixture
) -> None:
    scoped = key("async consumer", scopes=[f"stream:{us}/*:consume"])
    eventually(lambda: pipeline_seen(admin, us) == "none")

    async def poll() -> None:
        async with AsyncQueen(closed.url, api_key=scoped) as queen:
            assert await queen.consumer("visits", "g").poll(wait=0) is None

    asyncio.run(poll())
    assert len(warnings(caplog)) == 1


def test_a_select_of_a_caller_who_may_only_read_queues_has_the_hint(
    closed: Broker, key: MakeKey, admin: Api, us: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUEENSPARK_API_KEY", key("reader", scopes=[f"queue:{us}*:read"]))

    def hint() -> str:
        with BrokerApi(closed.url) as broker:
            lines = broker.sql(f"SELECT n FROM `{us}.orders`")
            assert isinstance(lines, Lines)
            try:
                return no_rows_hint(closed.url, lines)
            finally:
                lines.close()

    with leading(closed.database_url):
        eventually(lambda: pipeline_seen(admin, us) == "leading")
        assert "no pipeline" not in hint()
    eventually(lambda: pipeline_seen(admin, us) == "none")
    assert hint() == (
        "No rows yet: no pipeline was leading when the SELECT began; start one with `queenspark pipeline`."
    )


def test_a_poll_does_not_query_the_database_for_the_leader(closed: Broker, admin: Api, us: str) -> None:
    """The broker reads it in the background: a poll reports it even while the table is locked."""
    eventually(lambda: pipeline_seen(admin, us) == "none")
    with connect(closed.database_url) as connection, connection.transaction():
        connection.execute("LOCK TABLE queenspark.pipeline IN ACCESS EXCLUSIVE MODE")
        assert pipeline_seen(admin, us) == "none"
