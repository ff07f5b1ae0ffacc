"""Acknowledging: per message, fenced by the lease, and never forgotten."""

from typing import Any

import pytest

from tests.wire.api import Api, ack_of, payloads_of, refused, responded


def test_an_ack_returns_an_object(api: Api, queue: str) -> None:
    api.push(queue, 1)
    message = api.take(queue, consumerGroup="g")[0]
    result = api.ack(message, consumerGroup="g")
    assert result["success"] is True
    assert result["transactionId"] == message["transactionId"]
    assert result["status"] == "completed"
    assert result["consumerGroup"] == "g"
    assert result["leaseReleased"] is True
    assert result["dlq"] is False
    assert not result.get("error")


def test_the_lease_is_released_by_the_last_ack_of_its_batch(api: Api, queue: str) -> None:
    api.push(queue, 1, 2, 3)
    messages = api.take(queue, batch=3)
    assert [api.ack(message)["leaseReleased"] for message in messages] == [False, False, True]
    api.push(queue, 4)
    assert payloads_of(api.take(queue)) == [4]


def test_a_batch_of_acks_returns_an_array_in_order(api: Api, queue: str) -> None:
    api.push(queue, 1, 2)
    messages = api.take(queue, batch=2)
    results = api.ack_batch([(message, "completed") for message in messages])
    assert [result["success"] for result in results] == [True, True]
    assert [result["transactionId"] for result in results] == [
        message["transactionId"] for message in messages
    ]
    assert results[-1]["leaseReleased"] is True


def test_an_empty_batch_of_acks_returns_an_empty_array(api: Api) -> None:
    assert api.ack_batch([]) == []


@pytest.mark.parametrize("group", [None, "g"])
def test_acked_messages_are_not_delivered_again(api: Api, queue: str, group: str | None) -> None:
    named = {} if group is None else {"consumerGroup": group}
    api.push(queue, 1, 2)
    api.ack(api.take(queue, **named)[0], **named)
    assert payloads_of(api.take(queue, batch=10, **named)) == [2]


def test_an_ack_without_a_lease_id_applies_to_the_live_lease(api: Api, queue: str) -> None:
    api.push(queue, 1, 2)
    message = api.take(queue)[0]
    bare = {"transactionId": message["transactionId"], "partitionId": message["partitionId"]}
    assert responded(api.post("/api/v1/ack", bare), 200)["success"] is True
    assert payloads_of(api.take(queue)) == [2]


@pytest.mark.parametrize(
    ("missing", "reason"),
    [
        ("transactionId", "transactionId is required"),
        ("partitionId", "partitionId is required to ensure message uniqueness"),
    ],
)
def test_an_ack_names_its_message(api: Api, missing: str, reason: str) -> None:
    body = {"transactionId": "t", "partitionId": "p", "status": "completed"}
    del body[missing]
    assert refused(api.post("/api/v1/ack", body), 400) == reason


@pytest.mark.parametrize("body", [{}, {"acknowledgments": None}, {"acknowledgments": "x"}])
def test_an_acknowledgments_array_is_required(api: Api, body: dict[str, Any]) -> None:
    assert refused(api.post("/api/v1/ack/batch", body), 400) == "acknowledgments array is required"


def test_an_unknown_status_is_refused_by_name(api: Api, queue: str) -> None:
    api.push(queue, 1)
    message = api.take(queue)[0]
    assert "status" in refused(api.post("/api/v1/ack", ack_of(message, "perhaps")), 400)


@pytest.mark.parametrize("partition", ["", "not-a-partition", "0b5a7e43-41a6-4f57-9b0a-5c1c3a0d9f01", "7"])
def test_an_ack_of_a_message_that_is_not_there_is_refused(api: Api, partition: str) -> None:
    body = {"transactionId": "t", "partitionId": partition or "0", "status": "completed"}
    result = responded(api.post("/api/v1/ack", body), 200)
    assert result["success"] is False
    assert result["error"]


def test_an_ack_of_a_message_that_was_never_delivered_is_refused(api: Api, queue: str) -> None:
    pushed = api.push(queue, 1, 2)[1]
    api.take(queue)
    body = {"transactionId": pushed["transaction_id"], "partitionId": pushed["partition_id"]}
    assert responded(api.post("/api/v1/ack", {**body, "status": "completed"}), 200)["success"] is False


def test_an_ack_under_a_foreign_lease_id_is_refused(api: Api, queue: str) -> None:
    api.push(queue, 1)
    message = api.take(queue)[0]
    result = api.ack({**message, "leaseId": "0b5a7e43-41a6-4f57-9b0a-5c1c3a0d9f01"})
    assert result["success"] is False
    assert result["error"]
    assert api.ack(message)["success"] is True


def test_an_ack_after_the_lease_passed_to_another_is_refused(api: Api, queue: str) -> None:
    api.configure(queue, leaseTime=1)
    api.push(queue, 1)
    stale = api.take(queue)[0]
    api.configure(queue, leaseTime=30)
    live = api.take(queue)[0]
    assert live["leaseId"] != stale["leaseId"]
    assert api.ack(stale)["success"] is False
    assert api.ack(live)["success"] is True


def test_an_ack_of_one_group_is_nothing_to_another(api: Api, queue: str) -> None:
    api.push(queue, 1)
    api.drain(queue, 1, consumerGroup="one")
    assert payloads_of(api.take(queue, consumerGroup="two")) == [1]


def test_repeating_an_ack_is_harmless(api: Api, queue: str) -> None:
    api.configure(queue, retryDelay=0)
    api.push(queue, 1, 2)
    first, second = api.take(queue, batch=2)
    api.ack(first)
    api.ack(first)
    api.ack(first, "failed")
    assert api.ack(second)["success"] is True
    assert api.empty(queue)
    assert api.dead_letters(queue) == []


def test_a_failed_message_is_redelivered_with_its_retry_counted(api: Api, queue: str) -> None:
    api.configure(queue, retryDelay=0)
    api.push(queue, 1)
    first = api.take(queue)[0]
    result = api.ack(first, "failed", error="try again")
    assert (result["success"], result["leaseReleased"], result["dlq"]) == (True, True, False)
    again = api.take(queue)[0]
    assert again["id"] == first["id"]
    assert (first["retryCount"], again["retryCount"]) == (0, 1)


def test_a_message_given_back_with_retry_is_redelivered(api: Api, queue: str) -> None:
    api.configure(queue, retryDelay=0)
    api.push(queue, 1)
    first = api.take(queue)[0]
    assert api.ack(first, "retry")["success"] is True
    assert api.take(queue)[0]["id"] == first["id"]


def test_of_ok_failed_ok_only_the_failed_one_is_redelivered(api: Api, queue: str) -> None:
    api.configure(queue, retryDelay=0)
    api.push(queue, 1, 2, 3, 4)
    one, two, three = api.take(queue, batch=3)
    results = api.ack_batch([(one, "completed"), (two, "failed"), (three, "completed")])
    assert [result["success"] for result in results] == [True, True, True]
    assert payloads_of(api.drain(queue, 2)) == [2, 4]
    assert api.empty(queue)


def test_acking_the_last_alone_does_not_lose_those_before_it(api: Api, queue: str) -> None:
    api.configure(queue, leaseTime=3)
    api.push(queue, 1, 2, 3)
    api.ack(api.take(queue, batch=3)[2])
    api.configure(queue, leaseTime=30)
    assert payloads_of(api.drain(queue, 2)) == [1, 2]
    assert api.empty(queue)


def test_acking_backwards_brings_nothing_back(api: Api, queue: str) -> None:
    api.push(queue, 1, 2)
    one, two = api.take(queue, batch=2)
    assert api.ack(two)["success"] is True
    assert api.ack(one)["success"] is True
    assert api.empty(queue)


def test_after_the_retry_limit_a_message_is_a_dead_letter(api: Api, queue: str) -> None:
    api.configure(queue, retryDelay=0, retryLimit=2)
    api.push(queue, "poison", "next")
    verdicts = []
    for attempt in range(3):
        message = api.take(queue)[0]
        assert (message["data"], message["retryCount"]) == ("poison", attempt)
        verdicts.append(api.ack(message, "failed", error=f"attempt {attempt}")["dlq"])
    assert verdicts == [False, False, True]
    assert payloads_of(api.take(queue)) == ["next"]
    assert [letter["errorMessage"] for letter in api.dead_letters(queue)] == ["attempt 2"]


def test_the_status_dlq_makes_a_dead_letter_at_once(api: Api, queue: str) -> None:
    api.push(queue, "poison", "next")
    result = api.ack(api.take(queue)[0], "dlq", error="hopeless")
    assert (result["success"], result["dlq"]) == (True, True)
    assert [letter["errorMessage"] for letter in api.dead_letters(queue)] == ["hopeless"]
    assert payloads_of(api.take(queue)) == ["next"]


def test_an_ack_of_many_partitions_under_one_lease_completes_them_all(api: Api, queue: str) -> None:
    for name in "abc":
        api.push(queue, name, partition=name)
    api.complete(api.take(queue, partitions=3, batch=10))
    assert api.empty(queue)
