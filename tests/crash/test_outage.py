"""A PostgreSQL outage: the broker reports it, and recovers by itself."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from queenspark.embedded import EmbeddedPostgres
from tests.broker_process import Broker
from tests.conftest import StartBroker
from tests.wire.api import Api, payloads_of
from tests.wire.deadline import eventually

pytestmark = pytest.mark.crash


@pytest.fixture
def own(durable_postgres: EmbeddedPostgres, broker: StartBroker) -> Broker:
    """A broker on a PostgreSQL of this test's own."""
    return broker(database_url=durable_postgres.url)


@pytest.fixture
def api(own: Broker) -> Iterator[Api]:
    with Api(own.url) as api:
        yield api


def test_health_is_503_without_a_database_and_200_when_it_is_back(
    durable_postgres: EmbeddedPostgres, own: Broker, api: Api
) -> None:
    durable_postgres.kill()
    unwell = eventually(lambda: [r for r in [api.get("/health")] if r.status_code == 503], within=30)[
        0
    ].json()
    assert unwell["status"] != "healthy"
    assert unwell["database"] != "connected"
    durable_postgres.start()
    eventually(own.healthy, within=30)
    assert own.process.poll() is None


def test_a_push_without_a_database_is_5xx_and_works_when_it_is_back(
    durable_postgres: EmbeddedPostgres, own: Broker, api: Api
) -> None:
    api.push("q", "before")
    durable_postgres.kill()
    response = api.push_items([{"queue": "q", "payload": "meanwhile", "transactionId": "t"}])
    assert response.status_code in (500, 502, 503, 504)
    assert response.json()["error"]
    durable_postgres.start()
    eventually(own.healthy, within=30)
    api.push("q", "after")
    delivered = payloads_of(api.drain("q", 2))
    assert delivered == ["before", "after"]


def test_acks_survive_a_crash_of_the_database(
    durable_postgres: EmbeddedPostgres, own: Broker, api: Api
) -> None:
    api.push("q", 1, 2)
    assert api.ack(api.take("q")[0])["success"] is True
    durable_postgres.kill()
    durable_postgres.start()
    eventually(own.healthy, within=30)
    assert payloads_of(api.drain("q", 1)) == [2]
    assert api.empty("q")


def test_a_lease_from_before_a_crash_of_the_database_holds_or_is_forgotten(
    durable_postgres: EmbeddedPostgres, own: Broker, api: Api
) -> None:
    """A forgotten lease has ended: its ack is refused and its message is delivered again."""
    api.push("q", 1)
    message = api.take("q")[0]
    durable_postgres.kill()
    durable_postgres.start()
    eventually(own.healthy, within=30)
    if api.ack(message)["success"]:
        assert api.empty("q")
    else:
        assert payloads_of(api.take("q")) == [1]


def test_polls_work_again_when_the_database_is_back(
    durable_postgres: EmbeddedPostgres, own: Broker, api: Api
) -> None:
    with ThreadPoolExecutor(1) as threads:
        parked = threads.submit(api.pop, "q", wait="true", timeout=30_000)
        durable_postgres.kill()
        durable_postgres.start()
        eventually(own.healthy, within=30)
        api.push("q", "after")
        response = parked.result()
    if response.status_code == 200:
        assert payloads_of(response.json()["messages"]) == ["after"]
    else:
        assert response.status_code in (204, 500, 502, 503, 504)
        assert payloads_of(api.take("q")) == ["after"]


def test_a_broker_started_again_finds_everything(own: Broker, api: Api) -> None:
    api.push("q", 1, 2, 3)
    leased = api.take("q")[0]
    own.kill()
    own.start()
    assert api.empty("q"), "the lease holds"
    assert api.ack(leased)["success"] is True
    assert payloads_of(api.drain("q", 2)) == [2, 3]
