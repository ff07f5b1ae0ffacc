"""The OpenAPI document: complete, and no conforming request makes the broker fail."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from hypothesis.strategies import SearchStrategy
from schemathesis import GenerationMode
from schemathesis.core.result import Ok

from tests.access.conftest import make_key
from tests.conftest import StartBroker
from tests.wire.api import Api

CALLS = [
    ("post", "/api/v1/configure"),
    ("delete", "/api/v1/resources/queues/{queue}"),
    ("post", "/api/v1/push"),
    ("get", "/api/v1/pop/queue/{queue}"),
    ("get", "/api/v1/pop/queue/{queue}/partition/{partition}"),
    ("get", "/api/v1/pop"),
    ("post", "/api/v1/ack"),
    ("post", "/api/v1/ack/batch"),
    ("post", "/api/v1/transaction"),
    ("post", "/api/v1/lease/{lease}/extend"),
    ("get", "/api/v1/dlq"),
    ("get", "/api/v1/messages"),
    ("get", "/api/v1/messages/{partition}/{transaction}"),
    ("delete", "/api/v1/messages/{partition}/{transaction}"),
    ("post", "/api/v1/messages/{partition}/{transaction}/retry"),
    ("get", "/api/v1/resources/queues"),
    ("get", "/api/v1/resources/queues/{queue}"),
    ("get", "/api/v1/resources/namespaces"),
    ("get", "/api/v1/resources/tasks"),
    ("get", "/api/v1/resources/overview"),
    ("get", "/api/v1/consumer-groups"),
    ("get", "/api/v1/consumer-groups/lagging"),
    ("get", "/api/v1/consumer-groups/{group}"),
    ("delete", "/api/v1/consumer-groups/{group}"),
    ("delete", "/api/v1/consumer-groups/{group}/queues/{queue}"),
    ("post", "/api/v1/consumer-groups/{group}/subscription"),
    ("post", "/api/v1/consumer-groups/{group}/queues/{queue}/seek"),
    ("post", "/api/v1/consumer-groups/{group}/queues/{queue}/partitions/{partition}/seek"),
    ("post", "/api/v1/traces"),
    ("get", "/api/v1/traces/{partition}/{transaction}"),
    ("get", "/api/v1/traces/by-name/{name}"),
    ("get", "/api/v1/traces/names"),
    ("get", "/api/v1/status"),
    ("get", "/api/v1/status/queues"),
    ("get", "/api/v1/status/queues/{queue}"),
    ("get", "/api/v1/status/queues/{queue}/messages"),
    ("get", "/api/v1/status/analytics"),
    ("get", "/api/v1/system/maintenance"),
    ("post", "/api/v1/system/maintenance"),
    ("get", "/api/v1/system/maintenance/pop"),
    ("post", "/api/v1/system/maintenance/pop"),
    ("get", "/health"),
    ("get", "/metrics"),
    ("get", "/metrics/prometheus"),
]


def without_names(path: str) -> str:
    """The path with each of its parameters as a bare pair of braces."""
    return "/".join("{}" if part.startswith("{") else part for part in path.split("/"))


@pytest.fixture
def own(broker: StartBroker) -> Iterator[Api]:
    """The API of a broker of this test's own, whose long polls are short."""
    with Api(broker(max_wait_seconds=0.01).url) as api:
        yield api


def test_every_call_is_documented(api: Api) -> None:
    paths = api.read("/openapi.json")["paths"]
    documented = {(method, without_names(path)) for path, methods in paths.items() for method in methods}
    assert {(method, without_names(path)) for method, path in CALLS} - documented == set()


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("mode", list(GenerationMode), ids=str)
def test_the_broker_never_fails_on_any_request(own: Api, full_size: bool, mode: GenerationMode) -> None:
    """Positive: as the document says; negative: against it."""
    examples = 200 if full_size else 2
    sent = 0
    for found in schemathesis.openapi.from_url(f"{own.url}/openapi.json").get_all_operations():
        assert isinstance(found, Ok), "the document is valid"
        strategy = found.ok().as_strategy(generation_mode=mode)
        sent += never_fails(strategy, own.url, examples)
    assert sent >= (5000 if full_size else len(CALLS) // 2)


#: Callers of a broker with access control; the key of each, or None without one.
CALLERS: dict[str, dict[str, Any] | None] = {
    "nobody": None,
    "read-only": {"role": "read-only"},
    "scoped": {"role": "read-write", "scopes": ["queue:a*:push", "queue:a*:consume", "stream:a*:consume"]},
    "admin": {"role": "admin"},
}


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("caller", CALLERS)
def test_the_broker_never_fails_on_any_request_with_access_control(
    broker: StartBroker, caller: str, full_size: bool
) -> None:
    own = broker(max_wait_seconds=0.01, access_control="true")
    key = CALLERS[caller]
    headers = {} if key is None else {"X-API-Key": make_key(own.database_url, **key)[1]}
    examples = 25 if full_size else 1
    sent = 0
    for found in schemathesis.openapi.from_url(f"{own.url}/openapi.json").get_all_operations():
        assert isinstance(found, Ok), "the document is valid"
        for mode in GenerationMode:
            strategy = found.ok().as_strategy(generation_mode=mode)
            sent += never_fails(strategy, own.url, examples, headers)
    assert sent >= (2500 if full_size else len(CALLS) // 2)


def never_fails(
    strategy: SearchStrategy[Any], url: str, examples: int, headers: dict[str, str] | None = None
) -> int:
    """Send requests of one call; return how many."""
    sent = 0

    @given(case=strategy)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def served_without_failing(case: schemathesis.Case[Any]) -> None:
        nonlocal sent
        sent += 1
        response = case.call(base_url=url, headers=headers)
        assert response.status_code < 500, f"{case.as_curl_command()}\n{response.text}"

    with suppress(Unsatisfiable):  # a call without parameters has no negative form
        served_without_failing()
    return sent
