"""Queue options: each has the effect that its name promises."""

import time

import pytest

from tests.wire.api import Api, payloads_of, refused
from tests.wire.deadline import eventually


def test_each_retry_of_a_message_waits_longer(api: Api, queue: str) -> None:
    api.configure(queue, retryDelay=200, retryLimit=5)
    api.push(queue, 1)
    waits = []
    for _ in range(3):
        message = api.take(queue)[0]
        failed = time.monotonic()
        api.ack(message, "failed")
        api.ack(api.take(queue)[0], "retry")
        waits.append(time.monotonic() - failed)
    assert waits[0] > 0.15
    assert waits[2] > 1.5 * 0.2


def test_a_message_that_waits_for_its_retry_blocks_its_partition_only(api: Api, queue: str) -> None:
    api.configure(queue, retryDelay=60_000)
    api.push(queue, "fails", "behind it", partition="a")
    api.push(queue, "free", partition="b")
    api.ack(api.take(queue, "a")[0], "failed")
    assert payloads_of(api.take(queue, batch=9, partitions=9)) == ["free"]
    assert api.empty(queue)


def test_delayed_processing_hides_a_message_for_that_long(api: Api, queue: str) -> None:
    api.configure(queue, delayedProcessing=2)
    pushed = time.monotonic()
    api.push(queue, "later")
    assert api.empty(queue)
    assert payloads_of(api.take(queue)) == ["later"]
    assert time.monotonic() - pushed > 1.9


def test_a_window_buffer_hides_a_partition_until_pushes_pause(api: Api, queue: str) -> None:
    api.configure(queue, windowBuffer=2)
    api.push(queue, 1)
    assert api.pop(queue, wait="true", timeout=600).status_code == 204
    pushed = time.monotonic()
    api.push(queue, 2)
    assert payloads_of(api.take(queue, batch=9)) == [1, 2]
    assert time.monotonic() - pushed > 1.9


def test_a_window_buffer_holds_back_its_own_partition_only(api: Api, queue: str) -> None:
    api.configure(queue, windowBuffer=1)
    api.push(queue, "quiet", partition="a")
    assert payloads_of(api.take(queue)) == ["quiet"]
    api.configure(queue, windowBuffer=30)
    api.push(queue, "busy", partition="b")
    assert api.empty(queue)


def test_a_full_queue_refuses_pushes_with_429_and_says_why(api: Api, queue: str) -> None:
    api.configure(queue, maxSize=3)
    api.push(queue, 1, 2, 3)
    reason = refused(api.push_items([{"queue": queue, "payload": 4}]), 429)
    assert queue in reason
    assert "3" in reason


def test_a_queue_has_room_again_when_messages_are_consumed(api: Api, queue: str) -> None:
    api.configure(queue, maxSize=2)
    api.push(queue, 1, 2)
    refused(api.push_items([{"queue": queue, "payload": 3}]), 429)
    api.drain(queue, 2)
    eventually(lambda: api.push_items([{"queue": queue, "payload": 3}]).status_code == 201)
    assert payloads_of(api.take(queue)) == [3]


def test_a_full_queue_harms_no_other(api: Api, queue: str) -> None:
    api.configure(queue, maxSize=1)
    api.push(queue, 1)
    api.push(f"{queue}-other", 1)
    assert payloads_of(api.take(f"{queue}-other")) == [1]


def test_dead_letters_are_pushed_to_the_queue_that_is_named_for_them(api: Api, queue: str) -> None:
    api.configure(queue, deadLetterQueue=f"{queue}-dead", retryLimit=0)
    api.push(queue, "poison", partition="p")
    api.ack(api.take(queue)[0], "failed", error="no")
    message = api.take(f"{queue}-dead")[0]
    assert (message["data"], message["partition"]) == ("poison", "p")
    assert payloads_of(api.dead_letters(queue)) == ["poison"]


def test_without_dead_letters_a_message_is_retried_forever(api: Api, queue: str) -> None:
    api.configure(queue, dlqAfterMaxRetries=False, retryLimit=1, retryDelay=0)
    api.push(queue, "stubborn")
    for attempt in range(4):
        message = api.take(queue)[0]
        assert message["retryCount"] == attempt
        assert api.ack(message, "failed")["dlq"] is False
    assert api.dead_letters(queue) == []


@pytest.mark.parametrize("limit", [0, 1])
def test_the_retry_limit_counts_deliveries_after_the_first(api: Api, queue: str, limit: int) -> None:
    api.configure(queue, retryDelay=0, retryLimit=limit)
    api.push(queue, "poison")
    for _ in range(limit):
        assert api.ack(api.take(queue)[0], "failed")["dlq"] is False
    assert api.ack(api.take(queue)[0], "failed")["dlq"] is True
    assert api.empty(queue)
