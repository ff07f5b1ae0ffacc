"""Wake-ups of a parked poll: every operation that gives it something to deliver."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from tests.conftest import StartBroker
from tests.wire.api import Api, payloads_of, responded
from tests.wire.deadline import eventually

PATIENCE_MS = 20_000
AT_ONCE = 1.5
"""Seconds; less than the poll interval of parked polls."""

Park = Callable[..., "Future[httpx2.Response]"]


@pytest.fixture
def park(api: Api) -> Iterator[Park]:
    """Parks a poll of group g."""
    with ThreadPoolExecutor(4) as threads:

        def start(queue: str, **query: Any) -> "Future[httpx2.Response]":
            before = api.parked()
            waiting = {"wait": "true", "timeout": PATIENCE_MS, "consumerGroup": "g", "batch": 9}
            future = threads.submit(api.pop, queue, **{**waiting, **query})
            eventually(lambda: api.parked() > before)
            return future

        yield start


def woken(future: "Future[httpx2.Response]") -> list[Any]:
    return payloads_of(responded(future.result(AT_ONCE), 200)["messages"])


def test_an_ack_wakes_polls_for_the_rest_of_the_partition(api: Api, queue: str, park: Park) -> None:
    api.push(queue, 1, 2)
    message = api.take(queue, consumerGroup="g")[0]
    poll = park(queue)
    api.ack(message, consumerGroup="g")
    assert woken(poll) == [2]


def test_a_failure_wakes_polls_at_once_without_a_delay(api: Api, queue: str, park: Park) -> None:
    api.configure(queue, retryDelay=0)
    api.push(queue, 1)
    message = api.take(queue, consumerGroup="g")[0]
    poll = park(queue)
    api.ack(message, "failed", consumerGroup="g")
    assert woken(poll) == [1]


def test_a_failure_wakes_polls_after_its_delay(api: Api, queue: str, park: Park) -> None:
    api.configure(queue, retryDelay=300)
    api.push(queue, 1)
    message = api.take(queue, consumerGroup="g")[0]
    poll = park(queue)
    api.ack(message, "failed", consumerGroup="g")
    assert woken(poll) == [1]


def test_a_seek_wakes_polls(api: Api, queue: str, park: Park) -> None:
    api.push(queue, 1)
    api.drain(queue, 1, consumerGroup="g")
    poll = park(queue)
    api.seek("g", queue, timestamp="2001-01-01T00:00:00Z")
    assert woken(poll) == [1]


def test_a_returned_dead_letter_wakes_polls(api: Api, queue: str, park: Park) -> None:
    api.push(queue, 1)
    api.ack(api.take(queue, consumerGroup="g")[0], "dlq", consumerGroup="g")
    poll = park(queue)
    letter = api.dead_letters(queue)[0]
    api.post(f"/api/v1/messages/{letter['partitionId']}/{letter['transactionId']}/retry", {})
    assert woken(poll) == [1]


def test_a_transaction_wakes_polls_for_its_messages(api: Api, queue: str, park: Park) -> None:
    poll = park(queue)
    operation = {"type": "push", "items": [{"queue": queue, "payload": 1}]}
    assert api.transaction([operation])["success"] is True
    assert woken(poll) == [1]


def test_a_recreated_queue_wakes_polls(api: Api, queue: str, park: Park) -> None:
    api.push(queue, "old")
    api.drain(queue, 1, consumerGroup="g")
    poll = park(queue)
    api.delete(f"/api/v1/resources/queues/{queue}")
    api.push(queue, "new")
    assert woken(poll) == ["new"]


def test_a_deleted_group_wakes_polls(api: Api, queue: str, park: Park) -> None:
    group = f"g-{queue}"
    api.push(queue, "again")
    api.drain(queue, 1, consumerGroup=group)
    poll = park(queue, consumerGroup=group)
    api.delete(f"/api/v1/consumer-groups/{group}")
    assert woken(poll) == ["again"]


def test_a_poll_for_new_messages_gets_the_message_that_created_the_queue(
    api: Api, queue: str, park: Park
) -> None:
    poll = park(queue, subscriptionMode="new")
    api.push(queue, "first ever")
    assert woken(poll) == ["first ever"]


def test_a_push_to_another_queue_of_the_task_wakes_polls_of_the_task(
    api: Api, queue: str, park: Park
) -> None:
    api.configure(f"{queue}-1", task=queue)
    with ThreadPoolExecutor(1) as threads:
        waiting = {"task": queue, "wait": "true", "timeout": PATIENCE_MS}
        poll = threads.submit(api.get, "/api/v1/pop", **waiting)
        eventually(api.parked)
        api.configure(f"{queue}-2", task=queue)
        api.push(f"{queue}-2", "made later")
        assert woken(poll) == ["made later"]


def test_every_one_of_many_parked_polls_is_served(api: Api, queue: str, park: Park) -> None:
    polls = [park(queue, batch=1) for _ in range(4)]
    for name in "abcd":
        api.push(queue, name, partition=name)
    assert sorted(payload for poll in polls for payload in woken(poll)) == ["a", "b", "c", "d"]


def test_a_poll_for_one_partition_is_not_satisfied_by_another(api: Api, queue: str) -> None:
    api.push(queue, "elsewhere", partition="other")
    with ThreadPoolExecutor(1) as threads:
        poll = threads.submit(api.take, queue, "mine", timeout=PATIENCE_MS)
        eventually(api.parked)
        api.push(queue, "here", partition="mine")
        assert payloads_of(poll.result(AT_ONCE)) == ["here"]


def test_the_end_of_push_maintenance_wakes_polls(broker: StartBroker, queue: str) -> None:
    with Api(broker().url) as own, ThreadPoolExecutor(1) as threads:
        own.post("/api/v1/system/maintenance", {"enabled": True})
        own.push(queue, "staged")
        poll = threads.submit(own.pop, queue, wait="true", timeout=PATIENCE_MS)
        eventually(own.parked)
        own.post("/api/v1/system/maintenance", {"enabled": False})
        assert woken(poll) == ["staged"]
