"""Buffered pushes: gathered, in order, and none of them lost."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from queenspark import BufferFull, NotSent, Outgoing, Queen, QueenError
from tests.broker_process import Broker
from tests.client.conftest import stored
from tests.client.proxy import CUT_AFTER, CUT_BEFORE, Fault, Proxy
from tests.wire.api import Api
from tests.wire.deadline import eventually


@pytest.fixture
def impatient(proxy: Proxy) -> Iterator[Queen]:
    """A client with room for ten, that neither repeats requests nor waits long for room."""
    queen = Queen(proxy.url, timeout=2, retries=0, buffer_size=10, buffer_wait=0.2)
    yield queen
    with suppress(NotSent):
        queen.close()


def test_many_pushes_are_few_requests_in_their_order(far: Queen, proxy: Proxy, queue: str, api: Api) -> None:
    buffered = far.queue(queue).buffered()
    for number in range(2500):
        assert buffered.push(number) == []
    far.flush()
    assert stored(api, queue) == list(range(2500))
    assert proxy.count("/push") < 250


def test_a_lone_push_does_not_linger_for_long(queen: Queen, queue: str, api: Api) -> None:
    queen.queue(queue).buffered().push(1)
    assert eventually(lambda: stored(api, queue), within=5) == [1]


def test_pushes_are_gathered_for_as_long_as_they_may_linger(proxy: Proxy, queue: str, api: Api) -> None:
    with Queen(proxy.url, linger=60) as queen:
        queen.queue(queue).buffered().push([1, 2])
        queen.queue(queue).buffered().push(3)
        assert proxy.count("/push") == 0
        began = time.monotonic()
        queen.flush()
        assert time.monotonic() - began < 10
        assert proxy.count("/push") == 1
    assert stored(api, queue) == [1, 2, 3]


def test_leaving_the_block_flushes(shared_broker: Broker, queue: str, api: Api) -> None:
    with Queen(shared_broker.url, linger=60) as queen:
        queen.queue(queue).buffered().push([1, 2, 3])
    assert stored(api, queue) == [1, 2, 3]


def test_the_end_of_the_program_flushes(shared_broker: Broker, queue: str, api: Api) -> None:
    """Also that of a program which forked: the other process leaves the buffer alone."""
    program = f"""
import os, sys
from queenspark import Queen
queen = Queen({shared_broker.url!r}, linger=60)
queen.queue({queue!r}).buffered().push([1, 2, 3])
if child := os.fork():
    os.waitpid(child, 0)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    assert stored(api, queue) == [1, 2, 3]


def test_a_refused_item_harms_no_other(queen: Queen, queue: str, api: Api) -> None:
    buffered = queen.queue(queue).buffered()
    bad = "x" * 600
    for number in range(40):
        buffered.push(Outgoing(number, transaction_id=bad if number in (7, 30) else None))
    with pytest.raises(NotSent, match="2 messages were rejected; first: TransactionId is 600") as not_sent:
        queen.flush()
    assert not_sent.value.payloads == [7, 30]
    assert stored(api, queue) == [number for number in range(40) if number not in (7, 30)]
    queen.flush()


def test_a_refused_item_is_told_once_also_when_the_broker_goes_away_meanwhile(
    impatient: Queen, proxy: Proxy, queue: str, api: Api
) -> None:
    proxy.fail("/push", Fault(), Fault(), Fault(), Fault(), CUT_BEFORE)
    impatient.queue(queue).buffered().push(
        [Outgoing(number, transaction_id="x" * 600 if number == 0 else None) for number in range(10)]
    )
    payloads = []
    for _ in range(3):
        try:
            impatient.flush()
        except NotSent as error:
            payloads += error.payloads
    assert payloads == [0]
    assert stored(api, queue) == list(range(1, 10))


def test_while_the_broker_is_away_the_buffer_fills_and_then_says_so(
    impatient: Queen, proxy: Proxy, queue: str, api: Api
) -> None:
    proxy.away()
    buffered = impatient.queue(queue).buffered()
    for number in range(10):
        buffered.push(number)
    with pytest.raises(BufferFull, match="10 messages in the buffer"):
        buffered.push([10, 11])
    with pytest.raises(NotSent, match="10 messages in the buffer could not be sent: no broker") as not_sent:
        impatient.flush()
    assert not_sent.value.payloads == []
    proxy.back()
    eventually(lambda: len(stored(api, queue)) == 10)
    buffered.push([12, 13])
    impatient.flush()
    assert stored(api, queue) == [*range(10), 12, 13]


def test_pushes_wait_for_room(proxy: Proxy, queue: str, api: Api) -> None:
    with Queen(proxy.url, retries=0, buffer_size=10) as queen:
        proxy.away()
        queen.queue(queue).buffered().push(list(range(10)))
        waiting = threading.Thread(target=queen.queue(queue).buffered().push, args=[10])
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
        proxy.back()
        waiting.join(10)
        assert not waiting.is_alive()
    assert stored(api, queue) == list(range(11))


def test_lost_responses_store_nothing_twice(far: Queen, proxy: Proxy, queue: str, api: Api) -> None:
    proxy.fail("/push", CUT_AFTER, Fault(truncate=20), CUT_AFTER, CUT_BEFORE, Fault(status=503), CUT_AFTER)
    for number in range(50):
        far.queue(queue).buffered().push(number)
    while proxy.faults_left:
        far.queue(queue).buffered().push("more")
        with suppress(NotSent):
            far.flush()
    far.flush()
    found = stored(api, queue)
    assert found[:50] == list(range(50))
    assert found.count("more") == len(found) - 50


def test_a_full_queue_accepts_as_much_as_fits(shared_broker: Broker, queue: str, api: Api) -> None:
    """A request with more than max_size could never succeed."""
    with Queen(shared_broker.url, retries=0) as queen:
        queen.queue(queue).create(max_size=30)
        queen.queue(queue).group("g").pop()
        queen.queue(queue).buffered().push(list(range(100)))
        seen: list[int] = []
        queen.queue(queue).group("g").batch(50).each().limit(100).consume(lambda each: seen.append(each.data))
        assert seen == list(range(100))


def test_unsent_messages_are_returned_on_close(proxy: Proxy, queue: str) -> None:
    queen = Queen(proxy.url, retries=0)
    queen.queue(queue).push("there")
    proxy.away()
    queen.queue(queue).buffered().push([1, {"n": 2}])
    with pytest.raises(NotSent, match="could not be sent") as not_sent:
        queen.close()
    assert not_sent.value.payloads == [1, {"n": 2}]


def test_nothing_is_taken_after_close_and_lost(shared_broker: Broker, queue: str, api: Api) -> None:
    """Pushes of other threads while the client closes are either stored or refused."""
    queen = Queen(shared_broker.url)
    taken: list[int] = []
    started = threading.Event()

    def produce(number: int) -> None:
        with suppress(QueenError):
            while True:
                queen.queue(queue).buffered().push(number)
                taken.append(number)
                number += 10
                started.set()

    producers = [threading.Thread(target=produce, args=[number]) for number in range(4)]
    for producer in producers:
        producer.start()
    started.wait(10)
    queen.close()
    for producer in producers:
        producer.join(10)
    assert sorted(stored(api, queue)) == sorted(taken)
