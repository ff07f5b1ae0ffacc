"""Popping: the shape of the response, batches, partitions, groups, waiting and priority."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from tests.wire.api import Api, payloads_of, refused, responded
from tests.wire.deadline import eventually


def test_a_pop_returns_an_object_with_its_messages(api: Api, queue: str) -> None:
    item = {"queue": queue, "partition": "p", "payload": {"n": 1}, "transactionId": "t1"}
    pushed = api.push_items([item]).json()[0]
    response = responded(api.pop(queue, wait="true", timeout=5000, consumerGroup="g"), 200)
    assert response["success"] is True
    assert (response["queue"], response["partition"], response["consumerGroup"]) == (queue, "p", "g")
    assert response["partitionId"] == pushed["partition_id"]
    assert response["partitionsClaimed"] == 1
    assert response["leaseId"]
    message = response["messages"][0]
    assert message["id"] == pushed["message_id"]
    assert message["transactionId"] == "t1"
    assert message["data"] == {"n": 1}
    assert (message["queue"], message["partition"], message["consumerGroup"]) == (queue, "p", "g")
    assert message["partitionId"] == pushed["partition_id"]
    assert message["leaseId"] == response["leaseId"]
    assert (message["retryCount"], message["priority"]) == (0, 0)
    assert {"traceId", "producerSub"} <= message.keys()


def test_created_at_is_iso_8601_in_utc(api: Api, queue: str) -> None:
    api.push(queue, 1)
    created = api.take(queue)[0]["createdAt"]
    assert created.endswith("Z")
    age = datetime.now(UTC) - datetime.fromisoformat(created)
    assert timedelta(0) <= age < timedelta(seconds=30)


def test_nothing_to_deliver_is_204_without_a_body(api: Api, queue: str) -> None:
    api.configure(queue)
    response = api.pop(queue)
    assert (response.status_code, response.content) == (204, b"")


def test_an_unknown_queue_has_nothing_to_deliver(api: Api, queue: str) -> None:
    assert api.pop(queue).status_code == 204


def test_an_unknown_partition_has_nothing_to_deliver(api: Api, queue: str) -> None:
    api.push(queue, 1)
    assert api.pop(queue, "elsewhere").status_code == 204


def test_a_pop_delivers_one_message_unless_asked_for_more(api: Api, queue: str) -> None:
    api.push(queue, 1, 2, 3)
    assert payloads_of(api.take(queue)) == [1]


def test_a_batch_delivers_up_to_that_many_under_one_lease(api: Api, queue: str) -> None:
    api.push(queue, *range(10))
    messages = api.take(queue, batch=4)
    assert payloads_of(messages) == [0, 1, 2, 3]
    assert len({message["leaseId"] for message in messages}) == 1


def test_a_pop_under_autopilot_may_leave_the_batch_to_the_broker(api: Api, queue: str) -> None:
    api.push(queue, 1, 2, 3)
    assert payloads_of(api.take(queue, autopilot="true"))[0] == 1


@pytest.mark.parametrize("yes", ["true", "1"])
def test_auto_ack_delivers_without_a_lease_and_never_again(api: Api, queue: str, yes: str) -> None:
    api.push(queue, 1, 2)
    messages = api.take(queue, batch=2, autoAck=yes)
    assert [message["leaseId"] for message in messages] == ["", ""]
    assert api.empty(queue)
    api.push(queue, 3)
    assert payloads_of(api.take(queue)) == [3]


def test_auto_ack_false_is_a_lease(api: Api, queue: str) -> None:
    api.push(queue, 1)
    assert api.take(queue, autoAck="false")[0]["leaseId"]


def test_a_partition_can_be_popped_by_name(api: Api, queue: str) -> None:
    api.push(queue, "a", partition="pa")
    api.push(queue, "b", partition="pb")
    assert payloads_of(api.take(queue, "pb")) == ["b"]
    assert payloads_of(api.take(queue, "pa")) == ["a"]


def test_one_pop_claims_one_partition(api: Api, queue: str) -> None:
    for name in "abc":
        api.push(queue, name, name, partition=name)
    messages = api.take(queue, batch=100)
    assert len(messages) == 2
    assert len({message["partition"] for message in messages}) == 1


def test_a_pop_of_many_partitions_shares_one_lease_and_one_batch(api: Api, queue: str) -> None:
    for name in "abcd":
        api.push(queue, name, name, partition=name)
    response = responded(api.pop(queue, wait="true", timeout=5000, partitions=3, batch=100), 200)
    messages = response["messages"]
    assert response["partitionsClaimed"] == 3
    assert len({message["partition"] for message in messages}) == 3
    assert {message["leaseId"] for message in messages} == {response["leaseId"]}
    assert len(messages) == 6


def test_the_batch_is_the_total_over_all_claimed_partitions(api: Api, queue: str) -> None:
    for name in "abcd":
        api.push(queue, *[name] * 10, partition=name)
    assert len(api.take(queue, partitions=4, batch=15)) == 15


def test_a_leased_partition_is_not_delivered_to_the_same_group(api: Api, queue: str) -> None:
    api.push(queue, 1, 2, 3)
    api.take(queue, consumerGroup="g")
    assert api.empty(queue, consumerGroup="g")


def test_each_group_gets_every_message(api: Api, queue: str) -> None:
    api.push(queue, 1, 2)
    assert payloads_of(api.drain(queue, 2, consumerGroup="one")) == [1, 2]
    assert payloads_of(api.drain(queue, 2, consumerGroup="two")) == [1, 2]
    assert payloads_of(api.drain(queue, 2)) == [1, 2]


def test_consumers_of_a_group_share_the_partitions(api: Api, queue: str) -> None:
    for name in "abc":
        api.push(queue, name, partition=name)
    seen = {api.take(queue, consumerGroup="g")[0]["partition"] for _ in range(3)}
    assert seen == {"a", "b", "c"}


def test_a_long_poll_ends_with_204_after_its_timeout(api: Api, queue: str) -> None:
    started = time.monotonic()
    response = api.pop(queue, wait="true", timeout=400)
    took = time.monotonic() - started
    assert response.status_code == 204
    assert 0.3 < took < 3.0


@pytest.mark.parametrize("yes", ["true", "1"])
def test_a_long_poll_wakes_on_a_push(api: Api, queue: str, yes: str) -> None:
    with ThreadPoolExecutor(1) as threads:
        parked = threads.submit(api.pop, queue, wait=yes, timeout=20_000)
        eventually(api.parked)
        started = time.monotonic()
        api.push(queue, "wake up")
        response = responded(parked.result(), 200)
    assert payloads_of(response["messages"]) == ["wake up"]
    assert time.monotonic() - started < 2.0


def test_a_long_poll_of_a_queue_that_does_not_exist_yet_wakes_on_its_first_push(api: Api, queue: str) -> None:
    with ThreadPoolExecutor(1) as threads:
        parked = threads.submit(api.pop, queue, "p", wait="true", timeout=20_000, consumerGroup="g")
        api.push(queue, "first", partition="p")
        assert payloads_of(responded(parked.result(), 200)["messages"]) == ["first"]


def test_every_parked_poll_of_a_group_gets_a_response_or_keeps_waiting(api: Api, queue: str) -> None:
    with ThreadPoolExecutor(5) as threads:
        parked = [
            threads.submit(api.pop, queue, wait="true", timeout=20_000, consumerGroup="g") for _ in range(5)
        ]
        for name in "abcde":
            api.push(queue, name, partition=name)
        delivered = [responded(poll.result(), 200)["messages"][0]["data"] for poll in parked]
    assert sorted(delivered) == ["a", "b", "c", "d", "e"]


def test_a_pop_by_namespace_finds_any_of_its_queues(api: Api, queue: str) -> None:
    api.configure(f"{queue}-1", namespace=queue)
    api.configure(f"{queue}-2", namespace=queue)
    api.push(f"{queue}-2", "here")
    api.push(f"{queue}-3", "not here")
    response = responded(api.get("/api/v1/pop", namespace=queue, wait="true", timeout=5000), 200)
    assert payloads_of(response["messages"]) == ["here"]
    assert response["queue"] == f"{queue}-2"
    assert api.get("/api/v1/pop", namespace=queue).status_code == 204


def test_a_pop_by_task_finds_any_of_its_queues(api: Api, queue: str) -> None:
    api.configure(f"{queue}-1", namespace="any", task=queue)
    api.push(f"{queue}-1", "here")
    response = responded(api.get("/api/v1/pop", task=queue, wait="true", timeout=5000), 200)
    assert payloads_of(response["messages"]) == ["here"]


def test_a_pop_by_namespace_and_task_needs_both_to_match(api: Api, queue: str) -> None:
    api.configure(f"{queue}-1", namespace=queue, task="one")
    api.configure(f"{queue}-2", namespace=queue, task="two")
    api.push(f"{queue}-1", 1)
    api.push(f"{queue}-2", 2)
    response = responded(api.get("/api/v1/pop", namespace=queue, task="two", wait="true", timeout=5000), 200)
    assert payloads_of(response["messages"]) == [2]
    assert api.get("/api/v1/pop", namespace=queue, task="two").status_code == 204


def test_a_long_poll_by_namespace_wakes_on_a_push(api: Api, queue: str) -> None:
    api.configure(f"{queue}-1", namespace=queue)
    with ThreadPoolExecutor(1) as threads:
        parked = threads.submit(api.get, "/api/v1/pop", namespace=queue, wait="true", timeout=20_000)
        api.push(f"{queue}-1", "wake up")
        assert payloads_of(responded(parked.result(), 200)["messages"]) == ["wake up"]


def test_higher_priority_is_delivered_first(api: Api, queue: str) -> None:
    for priority in (1, 9, 5):
        api.configure(f"{queue}-{priority}", namespace=queue, priority=priority)
        api.push(f"{queue}-{priority}", priority)
    delivered = []
    for _ in range(3):
        response = responded(api.get("/api/v1/pop", namespace=queue, wait="true", timeout=5000), 200)
        delivered.append(response["messages"][0]["data"])
        assert response["messages"][0]["priority"] == response["messages"][0]["data"]
    assert delivered == [9, 5, 1]


def test_a_pop_without_queue_namespace_or_task_is_refused(api: Api) -> None:
    refused(api.get("/api/v1/pop"), 400)


@pytest.mark.parametrize(
    "query", [{"batch": "many"}, {"timeout": "soon"}, {"batch": "-1"}, {"partitions": "x"}]
)
def test_a_query_that_makes_no_sense_is_refused_by_name(api: Api, queue: str, query: dict[str, str]) -> None:
    assert next(iter(query)) in refused(api.pop(queue, **query), 400)


def test_unknown_query_parameters_are_ignored(api: Api, queue: str) -> None:
    api.push(queue, 1)
    assert payloads_of(api.take(queue, colour="red", conflate="no")) == [1]
