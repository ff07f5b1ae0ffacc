"""A broker that is stopped finishes requests in flight, and then ends."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import psycopg

from tests.broker_process import Broker
from tests.conftest import StartBroker
from tests.wire.api import Api, payloads_of
from tests.wire.deadline import eventually
from tests.wire.locks import waiting_for_a_lock

SOON = 8.0
"""Seconds; less than the time that a stopping broker gives to requests in flight."""


def listening(broker: Broker) -> bool:
    """Whether the broker still accepts new connections."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", broker.port)) == 0


def test_a_push_in_flight_is_stored_and_gets_its_response(
    broker: StartBroker, database: str, queue: str
) -> None:
    stopping = broker()
    with (
        Api(stopping.url) as api,
        psycopg.connect(database) as blocker,
        psycopg.connect(database, autocommit=True) as observer,
        ThreadPoolExecutor(2) as threads,
    ):
        api.push(queue, "before")
        blocker.execute("LOCK TABLE queenspark.messages IN SHARE MODE")
        pushing = threads.submit(api.push, queue, "in flight")
        eventually(lambda: waiting_for_a_lock(observer))
        stopped = threads.submit(stopping.stop)
        eventually(lambda: not listening(stopping))
        blocker.rollback()
        assert [result["status"] for result in pushing.result()] == ["queued"]
        assert stopped.result() == 0
    with Api(broker().url) as api:
        assert payloads_of(api.drain(queue, 2)) == ["before", "in flight"]


def test_parked_polls_get_204_at_once(broker: StartBroker, queue: str) -> None:
    stopping = broker()
    with Api(stopping.url) as api, ThreadPoolExecutor(3) as threads:
        parked = [threads.submit(api.pop, queue, wait="true", timeout=50_000) for _ in range(3)]
        eventually(lambda: api.parked() == 3)
        started = time.monotonic()
        assert stopping.stop() == 0
        assert [poll.result().status_code for poll in parked] == [204, 204, 204]
        assert time.monotonic() - started < SOON


def test_every_acknowledged_push_is_in_the_log(broker: StartBroker, queue: str) -> None:
    stopping = broker()
    confirmed: list[int] = []

    def produce(producer: int) -> None:
        with Api(stopping.url) as api:
            for number in range(producer, 100_000, 4):
                item = {"queue": queue, "partition": f"p{producer}", "payload": number}
                try:
                    response = api.push_items([item])
                except httpx2.TransportError:
                    return
                if response.status_code == 503:
                    return
                assert response.status_code == 201
                confirmed.append(number)

    with ThreadPoolExecutor(4) as threads:
        producers = [threads.submit(produce, producer) for producer in range(4)]
        eventually(lambda: len(confirmed) > 200)
        assert stopping.stop() == 0
        for producer in producers:
            producer.result()
    with Api(broker().url) as api:
        assert set(confirmed) <= set(everything(api, queue))


def everything(api: Api, queue: str) -> list[int]:
    """The content of the queue's log."""
    payloads: list[int] = []
    query: dict[str, Any] = {"batch": 1000, "partitions": 10, "consumerGroup": "audit", "autoAck": "true"}
    while (response := api.pop(queue, wait="true", timeout=300, **query)).status_code == 200:
        payloads += payloads_of(response.json()["messages"])
    return payloads


def test_a_second_signal_is_not_needed(broker: StartBroker) -> None:
    stopping = broker()
    started = time.monotonic()
    assert stopping.stop() == 0
    assert time.monotonic() - started < SOON
