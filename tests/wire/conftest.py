"""What the tests over HTTP share: an API of a broker that all use, and a queue of one's own."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.broker_process import Broker
from tests.wire.api import Api


@pytest.fixture(scope="session")
def api(shared_broker: Broker) -> Iterator[Api]:
    """The API of a broker that other tests use too: keep to queues and groups of your own."""
    with Api(shared_broker.url, shared_broker.database_url) as api:
        yield api


@pytest.fixture
def queue() -> str:
    """A queue name that no other test uses."""
    return f"q-{uuid4().hex[:12]}"
