"""Pushing: results in order, deduplication, atomic requests, and rejections."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.wire.api import Api, payloads_of, refused, responded


def test_a_push_returns_201_with_a_result_per_item_in_order(api: Api, queue: str) -> None:
    items = [
        {"queue": queue, "partition": f"p{i % 2}", "payload": i, "transactionId": f"t{i}"} for i in range(5)
    ]
    response = api.push_items(items)
    assert response.status_code == 201
    results = response.json()
    assert [result["index"] for result in results] == [0, 1, 2, 3, 4]
    assert [result["transaction_id"] for result in results] == ["t0", "t1", "t2", "t3", "t4"]
    assert {result["status"] for result in results} == {"queued"}
    assert {result["queueName"] for result in results} == {queue}
    assert len({result["message_id"] for result in results}) == 5
    assert len({result["partition_id"] for result in results}) == 2
    assert all("trace_id" in result for result in results)


def test_an_empty_push_returns_an_empty_array(api: Api) -> None:
    response = api.push_items([])
    assert (response.status_code, response.json()) == (201, [])


def test_the_partition_is_default_when_none_is_given(api: Api, queue: str) -> None:
    api.push_items([{"queue": queue, "payload": 1}])
    assert api.take(queue)[0]["partition"] == "Default"


@pytest.mark.parametrize(
    "payload",
    [
        None,
        False,
        0,
        "",
        [],
        {},
        "plain text",
        "ünï – 漢字 – 🐝",
        "a NUL \u0000 inside",
        12345678901234567890123,
        -0.125,
        [1, [2, {"three": None}]],
        {"nested": {"list": [1, "two", None, True]}, "empty": ""},
    ],
    ids=repr,
)
def test_any_json_comes_back_as_it_was_pushed(api: Api, queue: str, payload: object) -> None:
    api.push(queue, payload)
    assert payloads_of(api.take(queue)) == [payload]


def test_the_trace_id_travels_with_the_message(api: Api, queue: str) -> None:
    trace = "0b5a7e43-41a6-4f57-9b0a-5c1c3a0d9f01"
    result = api.push_items([{"queue": queue, "payload": 1, "traceId": trace}]).json()[0]
    assert result["trace_id"] == trace
    assert api.take(queue)[0]["traceId"] == trace


def test_items_of_a_partition_are_delivered_in_the_order_of_the_request(api: Api, queue: str) -> None:
    api.push(queue, *range(50))
    api.push(queue, *range(50, 60))
    assert payloads_of(api.drain(queue, 60)) == list(range(60))


def test_a_repeated_transaction_id_is_a_duplicate_of_the_first(api: Api, queue: str) -> None:
    item = {"queue": queue, "payload": "first", "transactionId": "same"}
    first = api.push_items([item]).json()[0]
    again = api.push_items([{**item, "payload": "second"}]).json()[0]
    assert (first["status"], again["status"]) == ("queued", "duplicate")
    assert again["message_id"] == first["message_id"]
    assert again["partition_id"] == first["partition_id"]
    assert payloads_of(api.drain(queue, 1)) == ["first"]
    assert api.empty(queue)


def test_a_transaction_id_repeated_within_one_request_is_stored_once(api: Api, queue: str) -> None:
    item = {"queue": queue, "payload": 1, "transactionId": "same"}
    first, again = api.push_items([item, item]).json()
    assert (first["status"], again["status"]) == ("queued", "duplicate")
    assert again["message_id"] == first["message_id"]


def test_a_duplicate_is_recognised_after_its_message_was_consumed(api: Api, queue: str) -> None:
    item = {"queue": queue, "payload": 1, "transactionId": "same"}
    api.push_items([item])
    api.drain(queue, 1)
    assert api.push_items([item]).json()[0]["status"] == "duplicate"


def test_the_same_transaction_id_in_another_partition_is_another_message(api: Api, queue: str) -> None:
    items = [{"queue": queue, "partition": name, "payload": name, "transactionId": "same"} for name in "ab"]
    assert [result["status"] for result in api.push_items(items).json()] == ["queued", "queued"]


def test_messages_without_a_transaction_id_are_never_duplicates(api: Api, queue: str) -> None:
    results = api.push(queue, "same", "same", "same")
    assert {result["status"] for result in results} == {"queued"}
    assert len({result["transaction_id"] for result in results}) == 3


@pytest.mark.parametrize("body", [{}, {"items": None}, {"items": "x"}, {"items": {"queue": "q"}}])
def test_an_items_array_is_required(api: Api, body: dict[str, Any]) -> None:
    assert refused(api.post("/api/v1/push", body), 400) == "items array is required"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"queue": 7}, "Queue must be a string"),
        ({"queue": None}, "Queue must be a string"),
        ({"partition": 7}, "Partition must be a string"),
        ({"transactionId": 7}, "TransactionId must be a string"),
        ({"traceId": 7}, "TraceId must be a string"),
    ],
)
def test_a_field_of_the_wrong_type_is_refused(
    api: Api, queue: str, fields: dict[str, object], reason: str
) -> None:
    assert reason in refused(api.push_items([{"queue": queue, "payload": 1, **fields}]), 400)


def test_an_item_without_a_queue_is_refused(api: Api) -> None:
    assert "Queue must be a string" in refused(api.push_items([{"payload": 1}]), 400)


@pytest.mark.parametrize("content", [b"", b"{", b"not json", b"[]", b"7", b'"items"', b"\xff\xfe"])
def test_a_body_that_is_no_json_object_is_a_bad_request(api: Api, content: bytes) -> None:
    response = api.http.post("/api/v1/push", content=content, headers={"Content-Type": "application/json"})
    refused(response, 400)


def test_one_bad_item_refuses_the_whole_request(api: Api, queue: str) -> None:
    response = api.push_items(
        [{"queue": queue, "payload": 1}, {"queue": queue, "payload": 2, "partition": 7}]
    )
    refused(response, 400)
    assert api.empty(queue)


def test_unknown_fields_of_an_item_are_ignored(api: Api, queue: str) -> None:
    body = {"items": [{"queue": queue, "payload": 1, "colour": "red"}], "mood": {"good": True}}
    assert api.post("/api/v1/push", body).status_code == 201
    assert payloads_of(api.take(queue)) == [1]


def test_concurrent_pushes_lose_nothing_and_a_bad_one_fails_alone(api: Api, queue: str) -> None:
    def push(number: int) -> int:
        partition: object = 7 if number % 10 == 0 else f"p{number % 4}"
        return api.push_items([{"queue": queue, "partition": partition, "payload": number}]).status_code

    with ThreadPoolExecutor(16) as threads:
        statuses = list(threads.map(push, range(200)))
    assert statuses == [400 if number % 10 == 0 else 201 for number in range(200)]
    delivered = payloads_of(api.drain(queue, 180))
    assert sorted(delivered) == [number for number in range(200) if number % 10]


def test_one_push_may_reach_many_queues_and_partitions(api: Api, queue: str) -> None:
    queues = [f"{queue}-{i}" for i in range(3)]
    items = [{"queue": name, "partition": f"p{i}", "payload": [name, i]} for name in queues for i in range(3)]
    assert len(api.push_items(items).json()) == 9
    for name in queues:
        assert sorted(payloads_of(api.drain(name, 3))) == [[name, 0], [name, 1], [name, 2]]


def test_a_pushed_queue_is_created_with_the_default_options(api: Api, queue: str) -> None:
    api.push(queue, 1)
    queues = api.read("/api/v1/resources/queues", search=queue)["queues"]
    assert queue in {found["name"] for found in queues}
    assert responded(api.get(f"/api/v1/resources/queues/{queue}"), 200)["name"] == queue
