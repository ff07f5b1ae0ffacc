"""Clients of a broker that other tests use too, with queues and streams of their own."""

from collections.abc import Iterator
from typing import Any

import pytest

from queenspark import Batch, Consumer, Queen
from tests.broker_process import Broker
from tests.client.proxy import Proxy
from tests.streams.stream_api import StreamApi
from tests.wire.api import Api

#: Seconds in which everything should have happened.
SOON = 10


@pytest.fixture
def queen(shared_broker: Broker) -> Iterator[Queen]:
    """A client of the broker."""
    with Queen(shared_broker.url) as queen:
        yield queen


@pytest.fixture
def proxy(shared_broker: Broker) -> Iterator[Proxy]:
    """A proxy before the broker."""
    with Proxy(shared_broker.port) as proxy:
        yield proxy


@pytest.fixture
def far(proxy: Proxy) -> Iterator[Queen]:
    """A client that reaches the broker only through the proxy, and waits at most 1.5 seconds for it."""
    with Queen(proxy.url, timeout=1.5, retries=3) as queen:
        yield queen


@pytest.fixture
def api(shared_broker: Broker) -> Iterator[Api]:
    """The broker's HTTP API, to check the state of the broker."""
    with Api(shared_broker.url, shared_broker.database_url) as api:
        yield api


@pytest.fixture
def stream(api: Api, shared_broker: Broker) -> Iterator[StreamApi]:
    """A stream of its own, partitioned and with short leases, whose windows the test seals."""
    stream = StreamApi(api, shared_broker.database_url)
    stream.define(partitioned=True, window_lease_timeout_ms=60_000)
    yield stream
    stream.close()


@pytest.fixture
def consumer(queen: Queen, stream: StreamApi) -> Consumer:
    """A consumer of the stream in the group g."""
    return queen.consumer(stream.name, "g")


def sealed(stream: StreamApi, *payloads: Any, key: str = "p", start_us: int | None = None) -> str:
    """Push records and seal a window over them; return its id."""
    window = stream.over(stream.push(*payloads, partition=key), key)
    assert stream.seal(window) == 1
    return f"{stream.id}:{key}:{window.start_us // 1000}:{window.end_us // 1000}"


def stored(api: Api, queue: str) -> list[Any]:
    """The payloads that a queue holds, in log order."""
    found: list[Any] = []
    while page := api.read("/api/v1/messages", queue=queue, limit=1000, offset=len(found))["messages"]:
        found += [message["data"] for message in page]
    return found[::-1]


def lease(stream: StreamApi, milliseconds: int) -> None:
    """Give the stream another lease time."""
    stream.define(partitioned=True, window_lease_timeout_ms=milliseconds)


def take(queen: Queen, queue: str, most: int = 100, group: str | None = None) -> Batch:
    """A batch, waited for."""
    chosen = queen.queue(queue).batch(most)
    return (chosen.group(group) if group else chosen).pop(wait=SOON)
