"""A request to every route, made from the table of routes; a route that is missing here fails the tests."""

import re
from typing import Any, NamedTuple
from uuid import UUID

import httpx2

from queenspark.broker.app import routes
from queenspark.broker.http import Right, Route

ROUTES = [route for route in routes() if route.right is not Right.PUBLIC]

#: Replaced by those of a request.
LEASE, PARTITION, TRANSACTION = "LEASE", "PARTITION", "TRANSACTION"

_PARAMETER = re.compile(r":(\w+)")
_FIXED = {"group": "g", "partition": "Default", "id": "none"}
_IDS = {"leaseId": LEASE, "partitionId": PARTITION, "transactionId": TRANSACTION}

#: Bodies and queries; `NAME` is the name of a queue, stream or job.
NAME = "NAME"
_EPOCH = "2026-01-01T00:00:00Z"
_OF_A_MESSAGE = {"transactionId": TRANSACTION, "partitionId": PARTITION}
_ACK = {**_OF_A_MESSAGE, "consumerGroup": "g"}
BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/api/v1/push"): {"items": [{"queue": NAME, "payload": 1}]},
    ("POST", "/api/v1/lease/:leaseId/extend"): {},
    ("POST", "/api/v1/ack"): _ACK,
    ("POST", "/api/v1/ack/batch"): {"acknowledgments": [_ACK]},
    ("POST", "/api/v1/transaction"): {
        "operations": [{"type": "push", "items": [{"queue": NAME, "payload": 1}]}],
    },
    ("POST", "/api/v1/configure"): {"queue": NAME},
    ("POST", "/api/v1/consumer-groups/:group/subscription"): {"subscriptionTimestamp": _EPOCH},
    ("POST", "/api/v1/consumer-groups/:group/queues/:queue/seek"): {"toEnd": True},
    ("POST", "/api/v1/consumer-groups/:group/queues/:queue/partitions/:partition/seek"): {"toEnd": True},
    ("POST", "/api/v1/traces"): {**_OF_A_MESSAGE, "data": {}},
    ("POST", "/api/v1/stream/define"): {
        "name": NAME, "namespace": NAME, "source_queue_names": [NAME], "window_type": "tumbling",
        "window_duration_ms": 1000,
    },
    ("POST", "/api/v1/stream/poll"): {
        "streamName": NAME, "namespace": NAME, "consumerGroup": "g", "timeout": 0,
    },
    ("POST", "/api/v1/stream/ack"): {"leaseId": LEASE},
    ("POST", "/api/v1/stream/renew-lease"): {"leaseId": LEASE},
    ("POST", "/api/v1/stream/seek"): {
        "streamName": NAME, "namespace": NAME, "consumerGroup": "g", "timestamp": "2026-01-01T00:00:00Z",
    },
    ("POST", "/api/v1/sql"): {"sql": "SHOW JOBS"},
    ("POST", "/api/v1/system/maintenance"): {"enabled": False},
    ("POST", "/api/v1/system/maintenance/pop"): {"enabled": False},
    ("POST", "/api/v1/keys"): {"name": "from the matrix", "scopes": ["queue:none:read"]},
}  # fmt: skip
QUERIES: dict[tuple[str, str], dict[str, str]] = {
    ("GET", "/api/v1/pop"): {"namespace": NAME},
    ("GET", "/api/v1/consumer-groups/lagging"): {"minLagSeconds": "0"},
    ("POST", "/api/v1/dlq/retry"): {"queue": NAME},
    ("DELETE", "/api/v1/dlq"): {"queue": NAME},
}


class Ids(NamedTuple):
    """The ids in a request."""

    lease: str = str(UUID(int=7))
    partition: str = "999999"
    transaction: str = "t"


UNKNOWN = Ids()
"""Ids of nothing that exists."""


def _filled(value: Any, name: str, ids: Ids) -> Any:
    if isinstance(value, dict):
        return {key: _filled(each, name, ids) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, name, ids) for each in value]
    return {NAME: name, LEASE: ids.lease, PARTITION: ids.partition, TRANSACTION: ids.transaction}.get(
        value, value
    )


def path_of(route: Route, name: str, ids: Ids) -> str:
    """The path of a route, with everything that it names."""

    def fill(match: re.Match[str]) -> str:
        parameter = match[1]
        return str(_filled(_IDS.get(parameter) or _FIXED.get(parameter) or NAME, name, ids))

    return _PARAMETER.sub(fill, route.path)


def call(
    client: httpx2.Client, route: Route, name: str, credential: str | None, ids: Ids = UNKNOWN
) -> httpx2.Response:
    """A valid request, except perhaps for its caller."""
    which = (route.method, route.path)
    assert route.body is None or which in BODIES, f"tests/access/calls.py has no body for {which}"
    return client.request(
        route.method,
        path_of(route, name, ids),
        params=_filled(QUERIES.get(which, {}), name, ids),
        json=_filled(BODIES[which], name, ids) if which in BODIES else None,
        headers={} if credential is None else {"Authorization": f"Bearer {credential}"},
    )


def identity(route: Route) -> str:
    """A route, as the names of tests have it."""
    return f"{route.method} {route.path}"
