"""Methods: HEAD and OPTIONS on every path, and unsupported methods."""

import pytest

from tests.broker_process import Broker
from tests.wire.api import Api, refused
from tests.wire.raw_connection import RawConnection


def test_an_unknown_path_is_a_404_with_an_error(api: Api) -> None:
    refused(api.get("/api/v1/dance"), 404)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/api/v1/push", "POST, OPTIONS"),
        ("PATCH", "/health", "GET, HEAD, OPTIONS"),
        ("PUT", "/api/v1/dlq", "GET, HEAD, DELETE, OPTIONS"),
        ("POST", "/api/v1/resources/queues/q", "GET, HEAD, DELETE, OPTIONS"),
        ("GET", "/api/v1/lease/x/extend/", "POST, OPTIONS"),
    ],
)
def test_a_method_that_a_path_does_not_take_is_a_405_that_names_the_others(
    api: Api, method: str, path: str, allowed: str
) -> None:
    response = api.http.request(method, path)
    assert allowed.split(", ", maxsplit=1)[0] in refused(response, 405)
    assert set(response.headers["allow"].split(", ")) == set(allowed.split(", "))


@pytest.mark.parametrize("path", ["/health", "/api/v1/resources/queues", "/openapi.json", "/api/v1/dance"])
def test_head_is_get_without_the_body(api: Api, path: str) -> None:
    head, get = api.http.head(path), api.get(path)
    assert head.status_code == get.status_code
    assert head.headers["content-type"] == get.headers["content-type"]
    assert int(head.headers["content-length"]) > 0
    assert head.content == b""


def test_head_of_a_route_without_get_is_405(api: Api) -> None:
    assert api.http.head("/api/v1/push").status_code == 405


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/health", {"GET", "HEAD", "OPTIONS"}),
        ("/api/v1/push", {"POST", "OPTIONS"}),
        ("/api/v1/resources/queues/some%2Fqueue", {"GET", "HEAD", "DELETE", "OPTIONS"}),
    ],
)
def test_options_names_the_methods_of_a_path(api: Api, path: str, allowed: set[str]) -> None:
    response = api.http.options(path)
    assert response.status_code == 204
    assert set(response.headers["allow"].split(", ")) == allowed


def test_options_of_an_unknown_path_is_404(api: Api) -> None:
    refused(api.http.options("/api/v1/dance"), 404)


def test_options_of_the_server_names_all_methods(shared_broker: Broker) -> None:
    with RawConnection(shared_broker.port) as connection:
        connection.send(b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n")
        status, headers, _ = connection.response()
    assert status == 204
    assert set(headers["allow"].split(", ")) == {"GET", "HEAD", "POST", "DELETE", "OPTIONS"}


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_routes_of_queens_newer_sdk_are_said_to_be_missing(api: Api, method: str) -> None:
    response = api.http.request(method, "/streams/v1/queries", json={"name": "q"})
    assert response.status_code == 404
    assert response.json()["error"].startswith("the routes /streams/v1 of Queen's newer SDK are not served")
    assert "/api/v1/stream/define" in response.json()["error"]
