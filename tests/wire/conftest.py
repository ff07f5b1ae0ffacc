"""What the tests over HTTP share: an API of a broker that all use, and a queue of one's own."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.broker_process import Broker
from tests.wire.api import Api
from tests.wire.document import Document


@pytest.fixture(scope="session")
def api(shared_broker: Broker) -> Iterator[Api]:
    """The API of a broker that other tests use too: keep to queues and groups of your own.

    Every answer is compared with the OpenAPI document.
    """
    with Api(shared_broker.url, shared_broker.database_url) as api:
        api.http.event_hooks = {"response": [Document(api.read("/openapi.json")).check]}
        yield api


@pytest.fixture
def queue() -> str:
    """A queue name that no other test uses."""
    return f"q-{uuid4().hex[:12]}"
