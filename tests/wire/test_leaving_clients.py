"""Clients that disconnect before their response: their messages are delivered to others at once."""

import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.broker_process import Broker
from tests.conftest import StartBroker
from tests.wire.api import Api, Json, payloads_of, responded
from tests.wire.deadline import eventually
from tests.wire.locks import waiting_for_a_lock
from tests.wire.raw_connection import RawConnection

AT_ONCE = 5.0
"""Seconds; a lease lasts 300."""


def poll(queue: str, group: str = "g") -> str:
    return f"/api/v1/pop/queue/{queue}?wait=true&timeout=60000&consumerGroup={group}"


@pytest.fixture(scope="module")
def own(module_broker: StartBroker) -> Broker:
    """A broker that these tests may stop and continue."""
    return module_broker()


@pytest.fixture(scope="module")
def other(module_broker: StartBroker) -> Iterator[Api]:
    """Another broker on the same database."""
    with Api(module_broker().url) as api:
        yield api


def test_a_client_that_left_while_parked_gets_no_lease(own: Broker, queue: str) -> None:
    with Api(own.url) as api:
        for number in range(5):
            connection = RawConnection(own.port)
            connection.get(poll(queue))
            eventually(api.parked)
            connection.close()
            api.push(queue, number)
            pushed = time.monotonic()
            messages = api.take(queue, consumerGroup="g")
            assert time.monotonic() - pushed < AT_ONCE
            assert payloads_of(messages) == [number]
            api.complete(messages, "g")


def test_a_client_that_left_right_before_its_response_gives_its_lease_back(
    own: Broker, other: Api, queue: str
) -> None:
    """The broker is frozen while the push and the departure both happen: it sees them together."""
    with Api(own.url) as api:
        for number in range(5):
            with RawConnection(own.port) as connection:
                connection.get(poll(queue))
                eventually(api.parked)
                own.process.send_signal(signal.SIGSTOP)
                try:
                    other.push(queue, number)
                    assert not connection.responded()
                    connection.close()
                finally:
                    own.process.send_signal(signal.SIGCONT)
            continued = time.monotonic()
            messages = api.take(queue, consumerGroup="g")
            assert time.monotonic() - continued < AT_ONCE
            assert payloads_of(messages) == [number]
            api.complete(messages, "g")


def test_clients_that_leave_in_a_crowd_do_not_disturb_those_that_stay(own: Broker, queue: str) -> None:
    with Api(own.url) as api, ThreadPoolExecutor(1) as threads:
        for number in range(3):
            leaving = [RawConnection(own.port) for _ in range(30)]
            for connection in leaving:
                connection.get(poll(queue, group="leaving"))
            staying = threads.submit(api.take, queue, consumerGroup="staying")
            for connection in leaving:
                connection.close()
            api.push(queue, number)
            messages = staying.result()
            assert payloads_of(messages) == [number]
            api.complete(messages, "staying")


def test_a_client_that_left_while_its_response_was_made_gives_its_lease_back(
    broker: StartBroker, database: str, queue: str
) -> None:
    """The broker is frozen while the pop is done and the client leaves: it learns of both together."""
    with Api(broker().url) as api:
        api.push(queue, 1, 2)
        api.ack(api.take(queue, consumerGroup="g")[0], consumerGroup="g")
        new = broker()
        with (
            psycopg.connect(database) as blocker,
            psycopg.connect(database, autocommit=True) as observer,
            RawConnection(new.port) as connection,
        ):
            blocker.execute("LOCK TABLE queenspark.partitions IN ACCESS EXCLUSIVE MODE")
            connection.get(poll(queue))
            eventually(lambda: waiting_for_a_lock(observer))
            new.process.send_signal(signal.SIGSTOP)
            try:
                connection.close()
                blocker.rollback()
                time.sleep(0.2)  # the pop is done, and its response waits for the broker
            finally:
                new.process.send_signal(signal.SIGCONT)
        assert payloads_of(api.take(queue, consumerGroup="g")) == [2]


def stream_poll(stream: str, group: str, timeout: int) -> Json:
    return {"streamName": stream, "consumerGroup": group, "timeout": timeout}


class Polls:
    """Polls of a queue, or of a stream on it."""

    def __init__(self, api: Api, queue: str, kind: str) -> None:
        self._api, self._queue, self._kind = api, queue, kind
        api.configure(queue)
        define = {"name": queue, "namespace": "tests", "source_queue_names": [queue]}
        responded(api.post("/api/v1/stream/define", define), 201)

    def once(self, group: str) -> None:
        """Poll an empty queue or stream."""
        if self._kind == "queue":
            assert self._api.empty(self._queue, consumerGroup=group)
        else:
            polled = self._api.post("/api/v1/stream/poll", stream_poll(self._queue, group, 0))
            assert polled.status_code == 204

    def leave(self, port: int, group: str) -> None:
        """Begin a long poll and go away."""
        with RawConnection(port) as leaving:
            if self._kind == "queue":
                leaving.get(poll(self._queue, group))
            else:
                leaving.post("/api/v1/stream/poll", stream_poll(self._queue, group, 60_000))


def groups_of(api: Api, queue: str) -> set[str]:
    """The groups of this test, which are named after its queue."""
    found = api.read("/api/v1/consumer-groups", limit=1000)["consumerGroups"]
    return {each["name"] for each in found if each["name"].startswith(queue)}


@pytest.mark.parametrize("kind", ["queue", "stream"])
def test_a_client_that_left_makes_no_group(own: Broker, queue: str, kind: str) -> None:
    """The broker is frozen while the client polls and leaves: it reads both one right after the other."""
    with Api(own.url) as api:
        polls = Polls(api, queue, kind)
        another = f"{queue}-another"
        polls.once(another)
        for number in range(5):
            own.process.send_signal(signal.SIGSTOP)
            try:
                polls.leave(own.port, f"{queue}-{number}")
            finally:
                own.process.send_signal(signal.SIGCONT)
            eventually(lambda: api.parked() == 0)
            polls.once(another)
            assert groups_of(api, queue) == {another}


@pytest.mark.parametrize("kind", ["queue", "stream"])
def test_a_client_that_left_does_not_bring_its_deleted_group_back(
    own: Broker, other: Api, queue: str, kind: str
) -> None:
    """The broker is frozen while the client polls, leaves and deletes its group by way of another broker."""
    with Api(own.url) as api:
        polls = Polls(api, queue, kind)
        another = f"{queue}-another"
        for number in range(5):
            group = f"{queue}-{number}"
            polls.once(group)
            own.process.send_signal(signal.SIGSTOP)
            try:
                polls.leave(own.port, group)
                responded(other.delete(f"/api/v1/consumer-groups/{group}"), 200)
            finally:
                own.process.send_signal(signal.SIGCONT)
            eventually(lambda: api.parked() == 0)
            polls.once(another)
            assert groups_of(other, queue) == {another}
