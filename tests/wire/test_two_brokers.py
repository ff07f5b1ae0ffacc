"""Two brokers on one database behave as one."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain

import pytest

from tests.broker_process import Broker
from tests.conftest import StartBroker
from tests.database import connect
from tests.wire.api import Api, payloads_of, responded
from tests.wire.deadline import eventually

AT_ONCE = 1.5
"""Seconds; less than the poll interval of parked polls."""


@dataclass
class Pair:
    """Two brokers and their APIs."""

    brokers: tuple[Broker, Broker]
    one: Api
    other: Api


@pytest.fixture(scope="module")
def pair(module_broker: StartBroker) -> Iterator[Pair]:
    """Two brokers for all tests here."""
    brokers = (module_broker(), module_broker())
    with Api(brokers[0].url) as one, Api(brokers[1].url) as other:
        yield Pair(brokers, one, other)


def test_a_message_pushed_to_one_broker_is_delivered_by_the_other(pair: Pair, queue: str) -> None:
    pair.one.push(queue, 1)
    message = pair.other.take(queue)[0]
    assert pair.one.ack(message)["success"] is True
    assert pair.other.empty(queue)


def test_a_lease_given_by_one_holds_on_the_other(pair: Pair, queue: str) -> None:
    pair.one.push(queue, 1, 2)
    message = pair.one.take(queue, consumerGroup="g")[0]
    assert pair.other.empty(queue, consumerGroup="g")
    responded(pair.other.post(f"/api/v1/lease/{message['leaseId']}/extend", {}), 200)


def test_a_push_wakes_polls_parked_on_the_other_broker(pair: Pair, queue: str) -> None:
    delays = []
    with ThreadPoolExecutor(1) as threads:
        for number in range(10):
            parked = threads.submit(pair.other.pop, queue, wait="true", timeout=20_000)
            eventually(pair.other.parked)
            pair.one.push(queue, number)
            pushed = time.monotonic()
            messages = responded(parked.result(), 200)["messages"]
            delays.append(time.monotonic() - pushed)
            assert payloads_of(messages) == [number]
            pair.other.complete(messages)
    assert sorted(delays)[len(delays) // 2] < 0.5, delays


def test_an_ack_on_one_wakes_polls_parked_on_the_other(pair: Pair, queue: str) -> None:
    pair.one.push(queue, 1, 2)
    message = pair.one.take(queue)[0]
    with ThreadPoolExecutor(1) as threads:
        parked = threads.submit(pair.other.take, queue)
        eventually(pair.other.parked)
        pair.one.ack(message)
        assert payloads_of(parked.result(AT_ONCE)) == [2]


def test_a_seek_on_one_wakes_polls_parked_on_the_other(pair: Pair, queue: str) -> None:
    pair.one.push(queue, 1)
    pair.one.drain(queue, 1, consumerGroup="g")
    with ThreadPoolExecutor(1) as threads:
        parked = threads.submit(pair.other.take, queue, consumerGroup="g")
        eventually(pair.other.parked)
        pair.one.seek("g", queue, timestamp="2001-01-01T00:00:00Z")
        assert payloads_of(parked.result(AT_ONCE)) == [1]


def test_a_duplicate_is_recognised_by_either(pair: Pair, queue: str) -> None:
    item = {"queue": queue, "payload": 1, "transactionId": "same"}
    assert pair.one.push_items([item]).json()[0]["status"] == "queued"
    assert pair.other.push_items([item]).json()[0]["status"] == "duplicate"


def test_options_set_on_one_hold_on_the_other(pair: Pair, queue: str) -> None:
    pair.other.push(queue, 0)
    pair.other.drain(queue, 1)
    pair.one.configure(queue, retryLimit=0, retryDelay=0)
    pair.other.push(queue, "poison")
    assert pair.other.ack(pair.other.take(queue)[0], "failed")["dlq"] is True


def test_a_queue_deleted_on_one_and_made_again_works_on_the_other(pair: Pair, queue: str) -> None:
    pair.one.push(queue, "old")
    pair.other.push(queue, "old too")
    pair.one.delete(f"/api/v1/resources/queues/{queue}")
    pair.other.push(queue, "new")
    assert payloads_of(pair.one.drain(queue, 1)) == ["new"]
    assert pair.one.empty(queue)


def test_partitions_are_shared_between_consumers_on_both(pair: Pair, queue: str) -> None:
    for partition in range(20):
        pair.one.push(queue, partition, partition=f"p{partition}")

    def consume(api: Api) -> list[int]:
        mine: list[int] = []
        while (
            response := api.pop(queue, batch=1, consumerGroup="g", wait="true", timeout=300)
        ).status_code == 200:
            messages = response.json()["messages"]
            api.complete(messages, "g")
            mine += payloads_of(messages)
        return mine

    with ThreadPoolExecutor(4) as threads:
        delivered = list(threads.map(consume, [pair.one, pair.other, pair.one, pair.other]))
    assert sorted(chain.from_iterable(delivered)) == list(range(20))


def test_consumers_miss_nothing_during_concurrent_pushes(pair: Pair, queue: str) -> None:
    """Each partition gets one message only: a missed one gets no second chance."""
    brokers = (pair.one, pair.other)
    delivered: list[int] = []
    latest = time.monotonic() + 30

    def push(number: int) -> None:
        brokers[number % 2].push(queue, number, partition=f"p{number}")

    def consume(api: Api) -> None:
        query = {"batch": 50, "partitions": 50, "consumerGroup": "g", "autoAck": "true", "wait": "true"}
        more = True
        while more or (len(delivered) < 600 and time.monotonic() < latest):
            response = api.get(f"/api/v1/pop/queue/{queue}", timeout=1500, **query)
            more = response.status_code == 200
            delivered.extend(payloads_of(response.json()["messages"]) if more else [])

    with ThreadPoolExecutor(10) as threads:
        consumers = [threads.submit(consume, api) for api in brokers]
        list(threads.map(push, range(600)))
        for consumer in consumers:
            consumer.result()
    assert sorted(delivered) == list(range(600))


def test_a_push_that_commits_late_is_not_skipped(pair: Pair, queue: str, module_database: str) -> None:
    """A connection of the test's own stands for a broker that is slow between its insert and its commit."""
    partition_ids = [
        pair.one.push(queue, f"first of p{n}", partition=f"p{n}")[0]["partition_id"] for n in range(2)
    ]
    delivered = payloads_of(pair.other.drain(queue, 2, consumerGroup="g"))
    with connect(module_database, autocommit=False) as slow:
        slow.execute(
            "INSERT INTO queenspark.messages"
            " (txid, id, partition_id, created_at, queue_id, transaction_id, payload)"
            " SELECT current_txid(), nextval('queenspark.message_blocks') * 1000, id,"
            " clock_timestamp(), queue_id, 'late', '\"late\"' FROM queenspark.partitions WHERE id = %s",
            (int(partition_ids[0]),),
        )
        pair.one.push(queue, "early", partition="p1")
        response = pair.other.pop(queue, consumerGroup="g", autoAck="true", wait="true", timeout=300)
        if response.status_code == 200:
            delivered += payloads_of(response.json()["messages"])
        slow.commit()
    delivered += payloads_of(pair.other.drain(queue, 4 - len(delivered), consumerGroup="g"))
    assert sorted(delivered) == ["early", "first of p0", "first of p1", "late"]


def test_two_brokers_pushing_to_the_same_partitions_never_block_each_other(pair: Pair, queue: str) -> None:
    def push(number: int) -> int:
        api = (pair.one, pair.other)[number % 2]
        order = range(8) if number % 3 else reversed(range(8))
        items = [
            {"queue": queue, "partition": f"p{p}", "payload": number, "transactionId": f"{number // 4}-{p}"}
            for p in order
        ]
        return api.push_items(items).status_code

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(push, range(200))) == {201}
    assert len(pair.one.drain(queue, 400, consumerGroup="all")) == 400
    assert pair.one.empty(queue, consumerGroup="all")
