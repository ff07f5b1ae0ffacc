"""A stream of one's own at a broker that other tests use too."""

from collections.abc import Iterator

import pytest

from tests.broker_process import Broker
from tests.streams.stream_api import StreamApi
from tests.wire.api import Api
from tests.wire.document import Document


@pytest.fixture
def api(shared_broker: Broker) -> Iterator[Api]:
    """The API of the shared broker; every response is compared with the OpenAPI document."""
    with Api(shared_broker.url, shared_broker.database_url) as api:
        api.http.event_hooks = {"response": [Document(api.read("/openapi.json")).check]}
        yield api


@pytest.fixture
def stream(api: Api, shared_broker: Broker) -> Iterator[StreamApi]:
    """A stream with a name of its own, not defined yet, and a queue with a first message."""
    stream = StreamApi(api, shared_broker.database_url)
    yield stream
    stream.close()
