"""GET /api/v1/resources/queues/:queue/log: a queue in the order of its log."""

from typing import Any

import pytest

from tests.horizon import wait_for_horizon
from tests.wire.api import Api, responded


def log(api: Api, queue: str, **query: Any) -> dict[str, Any]:
    assert api.database_url is not None
    wait_for_horizon(api.database_url)
    return api.read(f"/api/v1/resources/queues/{queue}/log", **query)


def test_pages_follow_each_other_in_the_order_of_the_log(api: Api, queue: str) -> None:
    for number in range(5):
        api.push(queue, number, partition=f"p{number % 2}")
    seen: list[Any] = []
    page = log(api, queue, limit=2)
    while page["messages"]:
        seen += [(message["partition"], message["data"]) for message in page["messages"]]
        page = log(api, queue, limit=2, after=page["next"])
    assert seen == [(f"p{number % 2}", number) for number in range(5)]
    assert page["next"] == page["end"]


def test_a_page_ends_after_eight_mebibytes(api: Api, queue: str) -> None:
    for _ in range(5):
        api.push(queue, "x" * 3_000_000)
    first = log(api, queue)
    second = log(api, queue, after=first["next"])
    assert (len(first["messages"]), len(second["messages"])) == (3, 2)


def test_it_begins_at_a_time(api: Api, queue: str) -> None:
    api.push(queue, "before")
    (first,) = log(api, queue)["messages"]
    later = first["createdAt"].replace(first["createdAt"][:4], str(int(first["createdAt"][:4]) + 1))
    assert log(api, queue, **{"from": later})["messages"] == []
    assert len(log(api, queue, **{"from": first["createdAt"]})["messages"]) == 1


def test_headers_come_along(api: Api, queue: str) -> None:
    api.push_items([{"queue": queue, "payload": 1, "headers": {"tenant": "north"}}])
    (message,) = log(api, queue)["messages"]
    assert message["headers"] == {"tenant": "north"}


def test_no_group_notices(api: Api, queue: str) -> None:
    api.push(queue, 1)
    log(api, queue)
    assert api.read("/api/v1/consumer-groups", queue=queue)["consumerGroups"] == []


@pytest.mark.parametrize("after", ["x", "1", "-1-2", "1-99999999999999999999", "1--1"])
def test_a_position_that_is_none_is_refused(api: Api, queue: str, after: str) -> None:
    api.push(queue, 1)
    response = responded(api.get(f"/api/v1/resources/queues/{queue}/log", after=after), 400)
    assert f"after is {after!r}" in response["error"]


def test_an_unknown_queue_is_not_found(api: Api, queue: str) -> None:
    assert api.get(f"/api/v1/resources/queues/{queue}/log").status_code == 404
