"""Headers common to all responses."""

import pytest

from tests.wire.api import Api


def test_a_response_with_a_body_is_json(api: Api, queue: str) -> None:
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
