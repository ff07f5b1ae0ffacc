"""Transactions: pushes and acks together, all or nothing."""

from typing import Any

import pytest

from tests.wire.api import Api, Message, ack_operation, payloads_of, push_operation, refused

NOT_A_LEASE = "0b5a7e43-41a6-4f57-9b0a-5c1c3a0d9f01"


@pytest.fixture
def message(api: Api, queue: str) -> Message:
    """A message under a live lease."""
    api.push(queue, "in")
    return api.take(queue)[0]


def test_acks_and_pushes_happen_together(api: Api, queue: str, message: Message) -> None:
    response = api.transaction(
        [ack_operation(message), push_operation(f"{queue}-out", "out")], [message["leaseId"]]
    )
    assert response["success"] is True
    assert response["transactionId"]
    assert len(response["results"]) == 2
    assert api.empty(queue)
    assert payloads_of(api.take(f"{queue}-out")) == ["out"]


def test_a_transaction_may_push_to_several_queues(api: Api, queue: str) -> None:
    response = api.transaction([push_operation(f"{queue}-1", 1), push_operation(f"{queue}-2", 2, 3)])
    assert response["success"] is True
    assert payloads_of(api.take(f"{queue}-1")) == [1]
    assert payloads_of(api.take(f"{queue}-2", batch=9)) == [2, 3]


def test_an_ack_may_leave_its_lease_to_the_required_leases(api: Api, queue: str, message: Message) -> None:
    bare = {key: value for key, value in ack_operation(message).items() if key != "leaseId"}
    assert api.transaction([bare], [message["leaseId"]])["success"] is True
    assert api.empty(queue)


def test_a_refused_ack_takes_the_pushes_back(api: Api, queue: str, message: Message) -> None:
    foreign = ack_operation({**message, "leaseId": NOT_A_LEASE})
    response = api.transaction([push_operation(f"{queue}-out", "out"), foreign])
    assert response["success"] is False
    assert response["error"]
    assert api.empty(f"{queue}-out")
    assert api.ack(message)["success"] is True


def test_a_required_lease_must_be_live(api: Api, queue: str, message: Message) -> None:
    response = api.transaction([ack_operation(message), push_operation(f"{queue}-out", "out")], [NOT_A_LEASE])
    assert response["success"] is False
    assert response["error"]
    assert api.empty(f"{queue}-out")
    assert api.ack(message)["success"] is True


def test_a_released_lease_is_no_longer_live(api: Api, queue: str, message: Message) -> None:
    api.ack(message)
    response = api.transaction([push_operation(f"{queue}-out", "out")], [message["leaseId"]])
    assert response["success"] is False
    assert api.empty(f"{queue}-out")


def test_a_refused_transaction_takes_back_the_acks_too(api: Api, queue: str) -> None:
    api.configure(queue, retryDelay=0)
    api.push(queue, 1, 2)
    first, second = api.take(queue, batch=2)
    foreign = ack_operation({**second, "leaseId": NOT_A_LEASE})
    assert api.transaction([ack_operation(first), foreign])["success"] is False
    api.ack_batch([(first, "failed"), (second, "failed")])
    assert payloads_of(api.drain(queue, 2)) == [1, 2]


def test_failed_inside_a_transaction_is_a_dead_letter_at_once(api: Api, queue: str, message: Message) -> None:
    response = api.transaction([ack_operation(message, "failed", error="no good")], [message["leaseId"]])
    assert response["success"] is True
    assert [letter["errorMessage"] for letter in api.dead_letters(queue)] == ["no good"]
    assert api.empty(queue)


def test_an_ack_for_a_group_names_its_group(api: Api, queue: str) -> None:
    api.push(queue, 1)
    message = api.take(queue, consumerGroup="g")[0]
    assert api.transaction([ack_operation(message, consumerGroup="g")])["success"] is True
    assert api.empty(queue, consumerGroup="g")


def test_a_repeated_push_in_a_transaction_is_stored_once(api: Api, queue: str) -> None:
    item = {"queue": queue, "payload": 1, "transactionId": "same"}
    operation = {"type": "push", "items": [item]}
    assert api.transaction([operation])["success"] is True
    assert api.transaction([operation])["success"] is True
    assert payloads_of(api.drain(queue, 1)) == [1]
    assert api.empty(queue)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({}, "operations array required"),
        ({"operations": None}, "operations array required"),
        ({"operations": "x"}, "operations array required"),
        ({"operations": []}, "operations array cannot be empty"),
    ],
)
def test_operations_are_required(api: Api, body: dict[str, Any], reason: str) -> None:
    assert refused(api.post("/api/v1/transaction", body), 400) == reason


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"items": [{"queue": "q", "payload": 9}]}, "items"),
        ({"items": []}, "items"),
        ({"type": "push", "items": []}, "transactionId"),
        ({"type": "push", "items": [], "transactionId": None}, "partitionId"),
    ],
)
def test_fields_of_another_type_of_operation_are_refused(
    api: Api, queue: str, message: Message, more: dict[str, Any], field: str
) -> None:
    body = {"operations": [push_operation(f"{queue}-out", 1), {**ack_operation(message), **more}]}
    reason = refused(api.post("/api/v1/transaction", body), 400)
    kind = more.get("type", "ack")
    assert reason.startswith(f"operations[1].{field} does not belong to an operation of type {kind}: ")
    assert api.empty(f"{queue}-out")
    assert api.transaction([{**ack_operation(message), "items": None}])["success"] is True


@pytest.mark.parametrize(
    "operation",
    [
        {"type": "dance"},
        {},
        {"type": "ack"},
        {"type": "ack", "transactionId": "t"},
        {"type": "push"},
        {"type": "push", "items": [{"queue": 7, "payload": 1}]},
    ],
)
def test_an_operation_that_makes_no_sense_changes_nothing(
    api: Api, queue: str, operation: dict[str, Any]
) -> None:
    body = {"operations": [push_operation(queue, 1), operation]}
    response = api.post("/api/v1/transaction", body)
    if response.status_code == 200:
        assert response.json()["success"] is False
    else:
        refused(response, 400)
    assert api.empty(queue)
