"""Lists are paged, sorted and searched by the broker, with the same parameters everywhere."""

from typing import Any

import pytest

from tests.wire.api import Api, refused
from tests.wire.deadline import eventually

Rows = list[dict[str, Any]]


def queues(api: Api, queue: str, **query: Any) -> list[str]:
    """The ends of the names of this test's queues."""
    rows: Rows = api.read("/api/v1/resources/queues", search=queue, **query)["queues"]
    return [row["name"].removeprefix(queue) for row in rows]


@pytest.fixture
def three(api: Api, queue: str) -> str:
    """Three queues whose names begin like this, with one, three and two messages."""
    for name, count in (("-A", 1), ("-b", 3), ("-C", 2)):
        api.push(queue + name, *range(count))
    return queue


def test_a_list_has_pages(api: Api, three: str) -> None:
    first = api.read("/api/v1/resources/queues", search=three, limit=2)
    assert len(first["queues"]) == 2
    assert (first["total"], first["limit"], first["offset"]) == (3, 2, 0)
    assert first["countedAt"] is None or first["countedAt"].endswith("Z")
    assert len(queues(api, three, limit=2, offset=2)) == 1
    beyond = api.read("/api/v1/resources/queues", search=three, offset=9)
    assert (beyond["queues"], beyond["total"]) == ([], 3)


def test_a_list_without_a_limit_is_whole(api: Api, three: str) -> None:
    found = api.read("/api/v1/resources/queues")
    assert (found["limit"], found["offset"]) == (1000, 0)
    assert len(found["queues"]) == min(1000, found["total"])


def test_a_search_matches_a_part_of_the_name_in_any_case(api: Api, three: str) -> None:
    assert sorted(queues(api, three)) == ["-A", "-C", "-b"]
    (found,) = api.read("/api/v1/resources/queues", search=f"{three[2:]}-B".upper())["queues"]
    assert found["name"] == f"{three}-b"
    assert queues(api, f"{three}%") == []


def test_a_list_is_sorted_up_and_down(api: Api, three: str) -> None:
    assert queues(api, three, sort="createdAt") == ["-A", "-b", "-C"]
    assert queues(api, three, sort="-createdAt") == ["-C", "-b", "-A"]
    assert queues(api, three, sort="-name") == queues(api, three, sort="name")[::-1]
    eventually(lambda: queues(api, three, sort="-messages") == ["-b", "-C", "-A"], within=30)


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/resources/queues",
        "/api/v1/status/queues",
        "/api/v1/consumer-groups",
        "/api/v1/resources/streams",
    ],
)
def test_a_sort_that_there_is_not_is_refused_with_those_that_there_are(api: Api, path: str) -> None:
    said = refused(api.get(path, sort="-size"), 400)
    assert said.startswith("sort (-size) must be one of name, ")


@pytest.mark.parametrize("query", [{"limit": 0}, {"limit": 1001}, {"offset": -1}])
def test_a_page_that_cannot_be_is_refused(api: Api, query: dict[str, int]) -> None:
    refused(api.get("/api/v1/resources/queues", **query), 400)


def test_groups_are_paged_searched_and_of_one_queue(api: Api, three: str) -> None:
    for name in ("-A", "-b"):
        api.take(three + name, consumerGroup=f"{three}-readers")
    found = api.read("/api/v1/consumer-groups", search=f"{three}-READ", limit=1, sort="queue")
    assert ([row["queue"] for row in found["consumerGroups"]], found["total"]) == ([f"{three}-A"], 2)
    found = api.read("/api/v1/consumer-groups", queue=f"{three}-b")
    assert [row["name"] for row in found["consumerGroups"]] == [f"{three}-readers"]
    found = api.read("/api/v1/status/analytics", search=f"{three}-readers", sort="-lag")
    assert {row["consumerGroup"] for row in found["groups"]} == {f"{three}-readers"}
    assert found["total"] == 2
    assert found["metrics"]["queenspark_pool_size"] > 0


def test_partitions_of_a_queue_are_paged(api: Api, queue: str) -> None:
    for name in ("one", "two", "three"):
        api.push(queue, 1, partition=name)
    found = api.read(f"/api/v1/resources/queues/{queue}", limit=2, sort="-name")
    assert [row["name"] for row in found["partitions"]] == ["two", "three"]
    assert found["partitionCount"] == 3
    found = api.read(f"/api/v1/resources/queues/{queue}", search="TH")
    assert [row["name"] for row in found["partitions"]] == ["three"]


def test_places_of_a_group_are_paged(api: Api, queue: str) -> None:
    for name in ("one", "two"):
        api.push(queue, 1, partition=name)
        api.take(queue, name, consumerGroup=f"g-{queue}")
    (shown,) = api.read(f"/api/v1/consumer-groups/g-{queue}", limit=1)["queues"]
    assert ([place["partition"] for place in shown["places"]], shown["partitions"]) == (["one"], 2)


def test_namespaces_are_paged_and_summed(api: Api, three: str) -> None:
    for name in ("-A", "-b"):
        api.configure(three + name, namespace=f"ns-{three}")

    def summed() -> bool:
        found = api.read("/api/v1/resources/namespaces", search=f"NS-{three}")
        (row,) = found["namespaces"]
        return bool(found["total"] == 1 and row["queues"] == 2 and row["messages"]["total"] == 4)

    eventually(summed, within=30)


def test_the_status_counts_the_messages_in_the_log(api: Api, queue: str) -> None:
    before = api.read("/api/v1/status")["messages"]["total"]
    api.push(queue, *range(50))
    eventually(lambda: api.read("/api/v1/status")["messages"]["total"] >= before + 50, within=30)
