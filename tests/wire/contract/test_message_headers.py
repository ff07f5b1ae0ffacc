"""Message headers on the wire: pushed, popped, browsed, and rejected."""

from typing import Any

import pytest

from tests.wire.api import Api, Json, refused, responded

HEADERS = {"tenant": "north", "traceparent": "00-ab-cd-01", "empty": "", "odd ü": "\x00 \n 漢字"}


def pushed(api: Api, queue: str, *headers: Any) -> None:
    """Push a message with each of these headers."""
    response = api.push_items([{"queue": queue, "payload": n, "headers": h} for n, h in enumerate(headers)])
    assert response.status_code == 201, response.text


def path_of(message: Json) -> str:
    return f"/api/v1/messages/{message['partitionId']}/{message['transactionId']}"


def test_a_message_comes_with_the_headers_that_it_was_pushed_with(api: Api, queue: str) -> None:
    pushed(api, queue, HEADERS)
    (message,) = api.take(queue)
    assert message["headers"] == HEADERS
    assert list(message["headers"]) == list(HEADERS), "in their order"


@pytest.mark.parametrize("none", [None, {}])
def test_a_message_without_headers_has_no_headers_field(api: Api, queue: str, none: Any) -> None:
    pushed(api, queue, none)
    api.push(queue, "without")
    for message in api.drain(queue, 2):
        assert "headers" not in message
        assert "headers" not in api.read(path_of(message))
    assert all("headers" not in each for each in api.read("/api/v1/messages", queue=queue)["messages"])


def test_messages_are_listed_and_shown_with_their_headers(api: Api, queue: str) -> None:
    pushed(api, queue, HEADERS)
    (message,) = api.take(queue)
    (listed,) = api.read("/api/v1/messages", queue=queue)["messages"]
    assert listed["headers"] == api.read(path_of(message))["headers"] == HEADERS


def test_a_dead_letter_has_its_headers_and_is_redelivered_with_them(api: Api, queue: str) -> None:
    pushed(api, queue, HEADERS)
    (message,) = api.take(queue)
    assert api.ack(message, "dlq", error="broken")["dlq"]
    (letter,) = api.dead_letters(queue)
    assert letter["headers"] == HEADERS
    assert api.read(path_of(message))["deadLetters"][0]["headers"] == HEADERS
    responded(api.post(f"{path_of(message)}/retry"), 200)
    assert api.take(queue)[0]["headers"] == HEADERS


def test_a_message_that_is_retried_keeps_its_headers(api: Api, queue: str) -> None:
    api.configure(queue, retryDelay=0)
    pushed(api, queue, HEADERS)
    (message,) = api.take(queue)
    api.ack(message, "failed", error="not yet")
    assert api.take(queue)[0]["headers"] == HEADERS


def test_a_transaction_pushes_with_headers(api: Api, queue: str) -> None:
    item = {"queue": queue, "payload": 1, "headers": HEADERS}
    assert api.transaction([{"type": "push", "items": [item]}])["success"]
    assert api.take(queue)[0]["headers"] == HEADERS


def test_a_duplicate_keeps_the_headers_of_the_first(api: Api, queue: str) -> None:
    for tenant in ("first", "second"):
        item = {"queue": queue, "payload": 1, "transactionId": "t", "headers": {"tenant": tenant}}
        assert api.push_items([item]).status_code == 201
    assert [message["headers"] for message in api.take(queue, batch=10)] == [{"tenant": "first"}]


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"_event_time": "x"}, ["_event_time", "reserved", "choose another"]),
        ({"": "x"}, ["empty"]),
        ({"a\tb": "x"}, ["control characters"]),
        ({"n" * 256: "x"}, ["256", "255"]),
        ({"a": "v" * 4097}, ["4097", "4096", "payload"]),
        ({f"h{n}": "x" for n in range(33)}, ["33", "32", "payload"]),
        ({"a": 1}, ["object of strings"]),
        ({"a": None}, ["object of strings"]),
        (["a"], ["object of strings"]),
        ("a=b", ["object of strings"]),
    ],
)
def test_headers_that_no_message_can_have_are_refused_with_the_fix(
    api: Api, queue: str, headers: Any, words: list[str]
) -> None:
    item = {"queue": queue, "payload": 1, "headers": headers}
    operation = {"type": "push", "items": [item]}
    for response in (
        api.push_items([{"queue": queue, "payload": 0}, item]),
        api.post("/api/v1/transaction", {"operations": [operation]}),
    ):
        error = refused(response, 400)
        assert error.startswith("headers ")
        assert all(word in error for word in words), error
    assert api.empty(queue), "not even the others of the request"
