"""Shared fixtures of the HTTP tests: the API of a shared broker, and a queue per test."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.broker_process import Broker
from tests.wire.api import Api
from tests.wire.document import Document
from tests.wire.sql import Sql


@pytest.fixture(scope="session")
def api(shared_broker: Broker) -> Iterator[Api]:
    """The API of a shared broker: use your own queues and groups only.

    Every response is compared with the OpenAPI document.
    """
    with Api(shared_broker.url, shared_broker.database_url) as api:
        api.http.event_hooks = {"response": [Document(api.read("/openapi.json")).check]}
        yield api


@pytest.fixture
def queue() -> str:
    """A queue name that no other test uses."""
    return f"q-{uuid4().hex[:12]}"


@pytest.fixture
def sql(api: Api) -> Sql:
    """Statements at the shared broker: keep to names of your own (see `tag`)."""
    return Sql(api)


@pytest.fixture
def tag() -> str:
    """A part of names that no other test uses."""
    return f"t{uuid4().hex[:10]}"


@pytest.fixture
def orders(sql: Sql, tag: str) -> str:
    """A queue with two orders."""
    name = f"orders_{tag}"
    sql.api.push(name, {"country": "DE", "amount": 5}, {"country": "FR", "amount": 7})
    return name
