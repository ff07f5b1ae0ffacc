"""CORS: closed by default; a setting names the origins whose pages may use the API."""

from collections.abc import Iterator

import httpx2
import pytest

from tests.broker_process import Broker
from tests.postgres_servers import PostgresServer
from tests.wire.api import Api

HOME, OTHER = "https://example.org", "https://example.com"
PREFLIGHT = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type,x-mine"}
PATHS = ["/health", "/api/v1/resources/queues", "/metrics", "/no/such/path"]


@pytest.fixture(scope="module")
def some(postgres_18: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """The API of a broker that two origins may use."""
    log_file = tmp_path_factory.mktemp("some") / "broker.log"
    with postgres_18.database() as url:
        started = Broker(url, log_file, cors_origins=f"{HOME}, http://localhost:8080")
        with Api(started.url) as api:
            yield api
        started.stop()


@pytest.fixture(scope="module")
def every(postgres_18: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """The API of a broker that every origin may use."""
    log_file = tmp_path_factory.mktemp("every") / "broker.log"
    with postgres_18.database() as url:
        started = Broker(url, log_file, cors_origins="*")
        with Api(started.url) as api:
            yield api
        started.stop()


def permissions(response: httpx2.Response) -> list[str]:
    """The headers that give a page a right."""
    return [name for name in response.headers if name.startswith("access-control-")]


@pytest.mark.parametrize("path", PATHS)
def test_no_origin_may_read_responses_by_default(api: Api, path: str) -> None:
    response = api.http.get(path, headers={"Origin": HOME})
    assert permissions(response) == []
    assert "vary" not in response.headers


def test_a_preflight_gets_no_permission_by_default(api: Api) -> None:
    assert permissions(api.http.options("/api/v1/push", headers={"Origin": HOME, **PREFLIGHT})) == []


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("origin", [HOME, "http://localhost:8080"])
def test_an_origin_of_the_setting_may_read_responses(some: Api, path: str, origin: str) -> None:
    response = some.http.get(path, headers={"Origin": origin})
    assert response.headers["access-control-allow-origin"] == origin
    assert response.headers["access-control-expose-headers"] == "retry-after"
    assert response.headers["vary"].lower() == "origin"


@pytest.mark.parametrize("origin", [OTHER, f"{HOME}:8443", "http://example.org", "null", "*", ""])
def test_other_origins_may_not(some: Api, origin: str) -> None:
    response = some.http.get("/health", headers={"Origin": origin})
    assert response.status_code == 200
    assert permissions(response) == []
    assert response.headers["vary"].lower() == "origin"
    assert permissions(some.http.options("/api/v1/push", headers={"Origin": origin, **PREFLIGHT})) == []


def test_a_response_without_an_origin_varies_by_it(some: Api) -> None:
    response = some.http.get("/health")
    assert permissions(response) == []
    assert response.headers["vary"].lower() == "origin"


def test_a_preflight_gets_methods_and_headers(some: Api) -> None:
    response = some.http.options("/api/v1/dlq", headers={"Origin": HOME, **PREFLIGHT})
    assert response.status_code == 204
    assert response.headers["access-control-allow-origin"] == HOME
    methods = response.headers["access-control-allow-methods"].split(", ")
    assert set(methods) == {"GET", "HEAD", "DELETE", "OPTIONS"}
    # The star does not stand for `authorization`.
    headers = response.headers["access-control-allow-headers"].split(", ")
    assert set(headers) == {"*", "authorization"}
    assert int(response.headers["access-control-max-age"]) > 0


def test_options_that_is_no_preflight_gets_no_methods_for_pages(some: Api) -> None:
    response = some.http.options("/api/v1/push", headers={"Origin": HOME})
    assert "access-control-allow-methods" not in response.headers


@pytest.mark.parametrize("path", PATHS)
def test_a_star_lets_every_origin_in(every: Api, path: str) -> None:
    response = every.http.get(path, headers={"Origin": OTHER})
    assert response.headers["access-control-allow-origin"] == "*"


def test_a_star_allows_every_preflight(every: Api) -> None:
    response = every.http.options("/api/v1/push", headers={"Origin": OTHER, **PREFLIGHT})
    assert response.status_code == 204
    assert response.headers["access-control-allow-origin"] == "*"
    assert "POST" in response.headers["access-control-allow-methods"].split(", ")
