"""The operators' view: resources, status, health and metrics."""

import pytest

from tests.wire.api import Api, refused, responded
from tests.wire.deadline import eventually


def test_queues_are_listed_with_their_counts(api: Api, queue: str) -> None:
    api.configure(queue, namespace="ns", task="t")
    api.push(queue, 1, 2, partition="p1")
    api.push(queue, 3, partition="p2")
    api.take(queue, "p2")
    found = next(
        q for q in api.read("/api/v1/resources/queues", search=queue)["queues"] if q["name"] == queue
    )
    assert found["id"]
    assert (found["namespace"], found["task"]) == ("ns", "t")
    assert found["createdAt"].endswith("Z")
    assert found["partitions"] == 2
    assert {"total", "pending", "processing"} <= found["messages"].keys()

    def counts() -> bool:
        row = next(
            q for q in api.read("/api/v1/resources/queues", search=queue)["queues"] if q["name"] == queue
        )
        return bool(row["messages"]["total"] == 3 and row["messages"]["processing"] == 1)

    eventually(counts, within=30)


def test_a_queue_is_shown(api: Api, queue: str) -> None:
    api.configure(queue, namespace="ns", leaseTime=42)
    api.push(queue, 1, partition="p1")
    found = api.read(f"/api/v1/resources/queues/{queue}")
    assert found["name"] == queue
    assert found["namespace"] == "ns"
    assert "p1" in str(found["partitions"])


@pytest.mark.parametrize("path", ["/api/v1/resources/queues/{}", "/api/v1/status/queues/{}"])
def test_a_queue_that_is_not_there_is_404(api: Api, queue: str, path: str) -> None:
    refused(api.get(path.format(queue)), 404)


def test_namespaces_and_tasks_are_listed(api: Api, queue: str) -> None:
    api.configure(queue, namespace=f"ns-{queue}", task=f"task-{queue}")
    assert f"ns-{queue}" in str(api.read("/api/v1/resources/namespaces", search=queue)["namespaces"])
    assert f"task-{queue}" in str(api.read("/api/v1/resources/tasks", search=queue)["tasks"])


def test_the_overview_counts_queues_and_messages(api: Api, queue: str) -> None:
    api.push(queue, 1)

    def shown() -> bool:
        overview = api.read("/api/v1/resources/overview")
        counts = (overview["queues"], overview["partitions"], overview["messages"]["total"])
        return overview["countedAt"] is not None and min(counts) >= 1

    eventually(shown)


@pytest.mark.parametrize(
    "path", ["/api/v1/status", "/api/v1/status/queues", "/api/v1/status/analytics", "/api/v1/consumer-groups"]
)
def test_status_pages_respond(api: Api, queue: str, path: str) -> None:
    api.push(queue, 1)
    assert api.get(path).status_code == 200


def test_the_status_of_a_queue_and_its_messages_can_be_read(api: Api, queue: str) -> None:
    api.push(queue, {"n": 1})
    assert queue in str(api.read(f"/api/v1/status/queues/{queue}"))
    messages = api.read(f"/api/v1/status/queues/{queue}/messages")["messages"]
    assert [message["data"] for message in messages] == [{"n": 1}]


def test_a_healthy_broker_says_so(api: Api) -> None:
    health = api.read("/health")
    assert (health["status"], health["database"]) == ("healthy", "connected")
    assert health["version"]


def test_metrics_are_json(api: Api) -> None:
    assert api.read("/metrics")


def test_prometheus_counts_every_operation(api: Api, queue: str) -> None:
    api.push(queue, 1)
    api.drain(queue, 1)
    text = api.get("/metrics/prometheus").text
    for word in ("push", "pop", "ack", "lag", "lease", "dead", "safe", "pool"):
        assert word in text, f"no metric about {word}"


def test_the_openapi_document_is_served(api: Api) -> None:
    document = responded(api.get("/openapi.json"), 200)
    assert document["openapi"].startswith("3.")
    assert "/api/v1/push" in document["paths"]
