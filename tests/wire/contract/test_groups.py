"""Consumer groups: where they start, where they are put, and how they end."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.wire.api import Api, payloads_of, refused, responded
from tests.wire.deadline import eventually


def group_path(group: str, queue: str) -> str:
    return f"/api/v1/consumer-groups/{group}/queues/{queue}"


def test_a_new_group_starts_at_the_beginning(api: Api, queue: str) -> None:
    api.push(queue, 1, 2)
    assert payloads_of(api.take(queue, batch=9, consumerGroup="g", subscriptionMode="all")) == [1, 2]


def test_mode_new_fixes_the_start_at_first_contact(api: Api, queue: str) -> None:
    api.push(queue, "before")
    new = {"consumerGroup": "g", "subscriptionMode": "new"}
    assert api.empty(queue, **new)
    api.push(queue, "after")
    api.push(queue, "after, elsewhere", partition="made later")
    assert sorted(payloads_of(api.drain(queue, 2, **new))) == ["after", "after, elsewhere"]
    assert api.empty(queue, **new)


def test_a_later_pop_does_not_move_a_fixed_start(api: Api, queue: str) -> None:
    api.push(queue, "before")
    assert api.empty(queue, consumerGroup="g", subscriptionMode="new")
    api.push(queue, "after")
    assert payloads_of(api.drain(queue, 1, consumerGroup="g")) == ["after"]
    assert api.empty(queue, consumerGroup="g")


def test_mode_new_holds_for_a_queue_made_after_the_first_contact(api: Api, queue: str) -> None:
    new = {"consumerGroup": "g", "subscriptionMode": "new"}
    assert api.empty(queue, **new)
    api.push(queue, "first ever")
    assert payloads_of(api.take(queue, **new)) == ["first ever"]


def test_subscription_from_now_is_mode_new(api: Api, queue: str) -> None:
    api.push(queue, "before")
    now = {"consumerGroup": "g", "subscriptionFrom": "now"}
    assert api.empty(queue, **now)
    api.push(queue, "after")
    assert payloads_of(api.take(queue, **now)) == ["after"]


def test_subscription_from_a_time_starts_there(api: Api, queue: str) -> None:
    api.push(queue, "before")
    between = between_pushes(api, queue)
    api.push(queue, "after")
    assert payloads_of(api.take(queue, batch=9, consumerGroup="g", subscriptionFrom=between)) == ["after"]


def test_a_subscription_from_nonsense_is_refused(api: Api, queue: str) -> None:
    api.push(queue, 1)
    reason = refused(api.pop(queue, consumerGroup="g", subscriptionFrom="yesterday"), 400)
    assert "subscriptionFrom" in reason


def between_pushes(api: Api, queue: str) -> str:
    """A time after everything pushed so far and before everything pushed from now on."""
    latest = api.take(queue, batch=100, consumerGroup="clock")[-1]["createdAt"]
    now = datetime.now(UTC)
    assert datetime.fromisoformat(latest) < now
    return now.isoformat()


def test_seek_to_the_end_skips_the_backlog(api: Api, queue: str) -> None:
    api.push(queue, 1, 2)
    api.push(queue, 3, partition="other")
    api.seek("g", queue, toEnd=True)
    assert api.empty(queue, consumerGroup="g")
    api.push(queue, 4)
    assert payloads_of(api.take(queue, batch=9, consumerGroup="g")) == [4]


def test_seek_to_a_time_delivers_from_there_again(api: Api, queue: str) -> None:
    api.push(queue, "old")
    between = between_pushes(api, queue)
    api.push(queue, "new")
    api.drain(queue, 2, consumerGroup="g")
    api.seek("g", queue, timestamp=between)
    assert payloads_of(api.drain(queue, 1, consumerGroup="g")) == ["new"]
    assert api.empty(queue, consumerGroup="g")


def test_seek_to_long_ago_delivers_everything_again(api: Api, queue: str) -> None:
    api.push(queue, 1, 2)
    api.drain(queue, 2, consumerGroup="g")
    api.seek("g", queue, timestamp="2001-01-01T00:00:00Z")
    assert payloads_of(api.drain(queue, 2, consumerGroup="g")) == [1, 2]


def test_seek_holds_for_partitions_that_the_group_has_not_met(api: Api, queue: str) -> None:
    api.push(queue, "met", partition="p1")
    api.drain(queue, 1, consumerGroup="g")
    api.push(queue, "not met", partition="p2")
    api.seek("g", queue, toEnd=True)
    assert api.empty(queue, consumerGroup="g")


def test_seek_moves_no_other_group(api: Api, queue: str) -> None:
    api.push(queue, 1)
    api.seek("g", queue, toEnd=True)
    assert payloads_of(api.take(queue, consumerGroup="other")) == [1]


def test_a_seek_of_one_partition_leaves_the_others(api: Api, queue: str) -> None:
    for name in "ab":
        api.push(queue, name, partition=name)
    api.drain(queue, 2, consumerGroup="g")
    api.seek("g", queue, "a", timestamp="2001-01-01T00:00:00Z")
    assert payloads_of(api.drain(queue, 1, consumerGroup="g")) == ["a"]
    assert api.empty(queue, consumerGroup="g")


def test_an_ack_from_before_a_seek_is_refused(api: Api, queue: str) -> None:
    api.push(queue, 1, 2)
    stale = api.take(queue, batch=2, consumerGroup="g")
    api.seek("g", queue, timestamp="2001-01-01T00:00:00Z")
    results = api.ack_batch([(message, "completed") for message in stale], "g")
    assert [result["success"] for result in results] == [False, False]
    assert payloads_of(api.take(queue, batch=2, consumerGroup="g")) == [1, 2]


@pytest.mark.parametrize("body", [{}, {"timestamp": "yesterday"}, {"timestamp": 7}, {"toEnd": "perhaps"}])
def test_a_seek_to_nowhere_is_refused(api: Api, queue: str, body: dict[str, object]) -> None:
    api.push(queue, 1)
    refused(api.post(f"{group_path('g', queue)}/seek", body), 400)


def test_a_seek_in_a_queue_that_is_not_there_is_404(api: Api, queue: str) -> None:
    refused(api.post(f"{group_path('g', queue)}/seek", {"toEnd": True}), 404)


def test_a_deleted_group_starts_again(api: Api, queue: str) -> None:
    group = f"g-{queue}"
    api.push(queue, 1)
    api.drain(queue, 1, consumerGroup=group)
    responded(api.delete(f"/api/v1/consumer-groups/{group}", deleteMetadata="true"), 200)
    assert payloads_of(api.take(queue, consumerGroup=group)) == [1]


def test_a_group_is_deleted_for_one_queue_alone(api: Api, queue: str) -> None:
    group = f"g-{queue}"
    for name in (f"{queue}-1", f"{queue}-2"):
        api.push(name, name)
        api.drain(name, 1, consumerGroup=group)
    responded(api.delete(group_path(group, f"{queue}-1"), deleteMetadata="true"), 200)
    assert payloads_of(api.take(f"{queue}-1", consumerGroup=group)) == [f"{queue}-1"]
    assert api.empty(f"{queue}-2", consumerGroup=group)


def test_a_group_deleted_without_its_metadata_keeps_its_start(api: Api, queue: str) -> None:
    group = f"g-{queue}"
    api.push(queue, "before")
    assert api.empty(queue, consumerGroup=group, subscriptionMode="new")
    api.push(queue, "after")
    api.drain(queue, 1, consumerGroup=group)
    responded(api.delete(f"/api/v1/consumer-groups/{group}", deleteMetadata="false"), 200)
    assert payloads_of(api.drain(queue, 1, consumerGroup=group)) == ["after"]
    assert api.empty(queue, consumerGroup=group)


def test_the_subscription_time_of_a_group_can_be_set(api: Api, queue: str) -> None:
    group = f"g-{queue}"
    api.push(queue, "before")
    assert api.empty(queue, consumerGroup=group, subscriptionMode="new")
    body = {"subscriptionTimestamp": "2001-01-01T00:00:00Z"}
    responded(api.post(f"/api/v1/consumer-groups/{group}/subscription", body), 200)
    api.push(queue, "after", partition="a partition met later")
    delivered = payloads_of(api.drain(queue, 1, consumerGroup=group))
    assert delivered[0] in ("before", "after")


def test_a_subscription_time_is_required(api: Api, queue: str) -> None:
    path = f"/api/v1/consumer-groups/g-{queue}/subscription"
    assert "subscriptionTimestamp" in refused(api.post(path, {}), 400)
    assert "subscriptionTimestamp" in refused(api.post(path, {"subscriptionTimestamp": "soon"}), 400)


def test_groups_are_listed_with_their_queues(api: Api, queue: str) -> None:
    group = f"g-{queue}"
    api.push(queue, 1)
    api.take(queue, consumerGroup=group)
    assert group in api.get("/api/v1/consumer-groups").text
    assert queue in api.get(f"/api/v1/consumer-groups/{group}").text


def test_a_group_that_is_not_there_is_404(api: Api, queue: str) -> None:
    refused(api.get(f"/api/v1/consumer-groups/never-{queue}"), 404)


def test_a_group_lags_when_its_backlog_is_old(api: Api, queue: str) -> None:
    group = f"g-{queue}"
    api.push(queue, 1, 2)
    api.ack(api.take(queue, consumerGroup=group)[0], consumerGroup=group)
    eventually(lambda: group in api.get("/api/v1/consumer-groups/lagging", minLagSeconds=0).text, within=30)
    assert group not in api.get("/api/v1/consumer-groups/lagging", minLagSeconds=3600).text


@pytest.mark.parametrize("word", ["all", "from_beginning", "earliest"])
def test_words_for_a_group_that_begins_at_the_oldest_message(api: Api, queue: str, word: str) -> None:
    api.push(queue, 1, 2)
    assert payloads_of(api.take(queue, batch=9, consumerGroup="g", subscriptionMode=word)) == [1, 2]


@pytest.mark.parametrize("word", ["new", "new-only", "latest"])
def test_words_for_a_group_that_begins_now(api: Api, queue: str, word: str) -> None:
    api.push(queue, 1)
    assert api.empty(queue, consumerGroup="g", subscriptionMode=word)
    api.push(queue, 2)
    assert payloads_of(api.take(queue, batch=9, consumerGroup="g", subscriptionMode=word)) == [2]


def test_other_words_are_refused_with_the_list(api: Api, queue: str) -> None:
    response = api.pop(queue, consumerGroup="g", subscriptionMode="beginning")
    assert response.status_code == 400
    assert response.json()["error"] == (
        "subscriptionMode is 'beginning'; use one of all, from_beginning, earliest, new, new-only, latest"
    )


def test_the_leases_of_a_group_are_listed_alone(api: Api, queue: str) -> None:
    for partition in ("a", "b", "c"):
        api.push(queue, 1, partition=partition)
        (message,) = api.take(queue, partition, consumerGroup=f"g-{queue}", consumerId=f"worker {partition}")
        if partition != "b":
            api.ack(message, consumerGroup=f"g-{queue}")

    def partitions(**query: Any) -> list[tuple[str, str | None]]:
        (found,) = api.read(f"/api/v1/consumer-groups/g-{queue}", **query)["queues"]
        return [(place["partition"], place["leaseHolder"]) for place in found["places"]]

    assert partitions() == [("a", None), ("b", "worker b"), ("c", None)]
    assert partitions(leased="true") == [("b", "worker b")]
