"""Headers and errors that every answer has in common."""

import pytest

from tests.wire.api import Api, refused


@pytest.mark.parametrize("path", ["/health", "/api/v1/resources/queues", "/metrics", "/no/such/path"])
def test_every_origin_may_read_the_answers(api: Api, path: str) -> None:
    response = api.http.get(path, headers={"Origin": "https://example.org"})
    assert response.headers["access-control-allow-origin"] == "*"


def test_a_browser_may_ask_first(api: Api) -> None:
    asked = {
        "Origin": "https://example.org",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type",
    }
    response = api.http.options("/api/v1/push", headers=asked)
    assert response.status_code in (200, 204)
    assert response.headers["access-control-allow-origin"] == "*"
    assert "POST" in response.headers["access-control-allow-methods"]
    assert response.headers["access-control-allow-headers"].lower() in ("*", "content-type")


def test_an_answer_with_a_body_is_json(api: Api, queue: str) -> None:
    pushed = api.push_items([{"queue": queue, "payload": 1}])
    popped = api.pop(queue, wait="true", timeout=5000)
    missing = api.get("/no/such/path")
    for response in (pushed, popped, missing, api.get("/health"), api.get("/metrics")):
        assert response.headers["content-type"].startswith("application/json")


def test_prometheus_metrics_are_text(api: Api) -> None:
    response = api.get("/metrics/prometheus")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain")
    assert "queenspark_" in response.text


def test_an_unknown_path_is_a_404_with_an_error(api: Api) -> None:
    refused(api.get("/api/v1/dance"), 404)


def test_a_known_path_with_another_method_is_a_405_with_an_error(api: Api) -> None:
    refused(api.get("/api/v1/push"), 405)


@pytest.mark.parametrize("content_type", [None, "text/plain", "application/json; charset=utf-8"])
def test_the_content_type_of_a_request_does_not_matter(
    api: Api, queue: str, content_type: str | None
) -> None:
    content = b'{"items":[{"queue":"' + queue.encode() + b'","payload":1}]}'
    headers = {} if content_type is None else {"Content-Type": content_type}
    assert api.http.post("/api/v1/push", content=content, headers=headers).status_code == 201


def test_a_connection_is_kept_for_further_requests(api: Api, queue: str) -> None:
    first = api.push_items([{"queue": queue, "payload": 1}])
    assert first.headers.get("connection", "").lower() != "close"
