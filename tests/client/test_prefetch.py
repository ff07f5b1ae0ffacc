"""Windows and messages are fetched ahead and acked together, and nothing is kept from idle workers."""

import threading
import time
from collections import Counter
from typing import Any

import pytest

from queenspark import Batch, Event, LeasedMessage, Outgoing, Queen, Window
from tests.client.conftest import SOON, lease, sealed, take
from tests.client.proxy import Proxy
from tests.streams.sealing import minute
from tests.streams.stream_api import StreamApi
from tests.wire.deadline import eventually

KEYS = [f"k{number:02}" for number in range(60)]


def warmed_up(stream: StreamApi, count: int) -> list[str]:
    """Seal windows of this many keys; return the keys."""
    stream.seal(*(minute(key, 1) for key in KEYS[:count]))
    return KEYS[:count]


def test_windows_are_polled_and_acked_together(far: Queen, proxy: Proxy, stream: StreamApi) -> None:
    keys = warmed_up(stream, 60)
    seen: list[str] = []
    far.consumer(stream.name, "g").process(lambda window: seen.append(window.key), limit=60)
    assert sorted(seen) == keys
    assert proxy.count("/poll") <= 10
    assert proxy.count("/ack") <= 15
    assert stream.empty()


def test_messages_are_popped_and_acked_together(far: Queen, proxy: Proxy, queue: str) -> None:
    far.queue(queue).push([Outgoing(number, partition=f"p{number % 5}") for number in range(300)])
    seen: list[Batch] = []
    far.queue(queue).limit(300).consume(seen.append)
    assert [len(batch) for batch in seen] == [1] * 300
    for partition in range(5):
        own = [batch[0].data for batch in seen if batch[0].partition == f"p{partition}"]
        assert own == list(range(partition, 300, 5))
    assert proxy.count("/pop") <= 30
    assert proxy.count("/ack") <= 45
    assert len(far.queue(queue).pop()) == 0


def test_a_slow_handler_keeps_no_window_from_an_idle_worker(queen: Queen, stream: StreamApi) -> None:
    """Quick windows make it fetch ahead; then one blocks, and those behind it go to another process."""
    warmed_up(stream, 40)
    blocked, free = threading.Event(), threading.Event()
    first: list[str] = []
    others: list[str] = []

    def slow(window: Window) -> None:
        first.append(window.key)
        if len(first) == 20:
            blocked.set()
            free.wait(SOON)

    slow_one, other = queen.consumer(stream.name, "g"), queen.consumer(stream.name, "g")
    threads = [threading.Thread(target=slow_one.process, args=[slow])]
    threads[0].start()
    assert blocked.wait(SOON)
    threads.append(threading.Thread(target=other.process, args=[lambda window: others.append(window.key)]))
    threads[1].start()
    try:
        eventually(lambda: len(others) == 20)
    finally:
        free.set()
        slow_one.stop()
        other.stop()
        for thread in threads:
            thread.join(SOON)
    assert sorted(first + others) == KEYS[:40]


def test_an_idle_worker_of_the_same_process_takes_waiting_deliveries(queen: Queen, stream: StreamApi) -> None:
    warmed_up(stream, 30)
    release = threading.Event()
    seen: list[str] = []

    def handler(window: Window) -> None:
        if window.key == KEYS[0]:
            assert release.wait(SOON)
        else:
            seen.append(window.key)
            if len(seen) == 29:
                release.set()

    queen.consumer(stream.name, "g").process(handler, concurrency=2, limit=30)
    assert len(seen) == 29


def test_a_slow_partition_keeps_no_worker_from_the_others(queen: Queen, queue: str) -> None:
    """Quick messages make it fetch many of a partition; then they are slow, and other partitions come."""
    queen.queue(queue).push([Outgoing(number, partition="long") for number in range(300)])
    done = threading.Event()
    seen: Counter[str] = Counter()

    def handler(batch: Batch) -> None:
        seen[batch[0].partition] += 1
        if seen["long"] == 50 and not done.is_set() and batch[0].partition == "long":
            queen.queue(queue).push([Outgoing(number, partition=f"p{number}") for number in range(20)])
            assert done.wait(SOON)
        if sum(seen[f"p{number}"] for number in range(20)) == 20:
            done.set()

    queen.queue(queue).concurrency(2).limit(320).consume(handler)
    assert (seen["long"], sum(seen.values())) == (300, 320)


def test_released_work_counts_neither_as_failed_nor_towards_the_limit(
    queen: Queen, stream: StreamApi
) -> None:
    warmed_up(stream, 40)
    seen: Counter[str] = Counter()
    events: list[Event] = []

    def handler(window: Window) -> None:
        seen[window.key] += 1
        assert window.retries == 0
        if sum(seen.values()) == 10:
            time.sleep(1)  # the work: longer than fetched windows wait

    queen.consumer(stream.name, "g", on_event=events.append).process(handler, limit=40)
    assert seen == Counter(KEYS[:40])
    assert Counter(event.kind for event in events) == {"delivered": 40, "done": 40}


def test_a_failing_handler_nacks_only_its_own_window(queen: Queen, stream: StreamApi) -> None:
    warmed_up(stream, 30)

    def handler(window: Window) -> None:
        if window.key == KEYS[7]:
            raise ValueError("this one")

    queen.consumer(stream.name, "g", on_event=lambda event: None).process(handler, limit=30, concurrency=3)
    (again,) = stream.resource("windows", consumerGroup="g")["windows"]
    assert (again["key"], again["state"], again["error"]) == (KEYS[7], "retrying", "ValueError: this one")


def test_windows_that_wait_for_their_turn_keep_their_leases(queen: Queen, stream: StreamApi) -> None:
    """Two workers with long windows: each lease is renewed, also while an ack waits to be sent."""
    lease(stream, 1000)
    for key in "abcd":
        sealed(stream, 1, key=key)
    events: list[Event] = []

    def handler(window: Window) -> None:
        time.sleep(1.5)  # the work: longer than the lease

    queen.consumer(stream.name, "g", on_event=events.append).process(handler, concurrency=2, limit=4)
    kinds = Counter(event.kind for event in events)
    assert (kinds["delivered"], kinds["done"], kinds["lost"]) == (4, 4, 0)
    assert stream.empty()


@pytest.mark.parametrize("each", [False, True], ids=["batches", "each"])
def test_messages_that_wait_for_their_turn_keep_their_leases(queen: Queen, queue: str, each: bool) -> None:
    """Two workers with slow handlers, and more messages at hand: no lease expires, nothing comes twice."""
    queen.queue(queue).create(lease_time=1)
    for partition in "abcd":
        queen.queue(queue).partition(partition).push([1, 2])
    events: list[Event] = []
    seen: list[tuple[str, Any]] = []

    def handler(delivered: Any) -> None:
        time.sleep(1.5)  # the work: longer than the lease
        seen.extend((message.partition, message.data) for message in ([delivered] if each else delivered))

    chosen = queen.queue(queue).group("g").batch(2).concurrency(2)
    (chosen.each() if each else chosen).limit(8).consume(handler, on_event=events.append)
    kinds = Counter(event.kind for event in events)
    assert sorted(seen) == [(partition, n) for partition in "abcd" for n in (1, 2)]
    assert kinds["lost"] == 0
    assert kinds["renewed"] > 0
    assert len(queen.queue(queue).group("g").batch(8).pop()) == 0


@pytest.mark.parametrize("each", [False, True], ids=["batches", "each"])
def test_a_failure_far_ahead_keeps_the_order_of_its_partition(queen: Queen, queue: str, each: bool) -> None:
    queen.queue(queue).create(retry_delay=0, retry_limit=1)
    queen.queue(queue).push(list(range(200)))
    seen: list[tuple[int, int]] = []

    def handler(given: Any) -> None:
        message: LeasedMessage = given if each else given[0]
        seen.append((message.data, message.retries))
        if message.data % 50 == 49:
            raise ValueError("never")

    source = queen.queue(queue).idle(1)
    (source.each() if each else source).consume(handler, on_event=lambda event: None)
    expected = [(n, retries) for n in range(200) for retries in ((0, 1) if n % 50 == 49 else (0,))]
    assert seen == expected
    assert len(queen.queue(queue).dead_letters()) == 4


def test_a_handler_that_nacks_by_itself_keeps_those_behind_waiting(queen: Queen, queue: str) -> None:
    queen.queue(queue).create(retry_delay=0, retry_limit=1)
    queen.queue(queue).push(list(range(100)))
    seen: list[int] = []

    def handler(batch: Batch) -> None:
        seen.append(batch[0].data)
        if batch[0].data == 60:
            batch.nack("later")

    queen.queue(queue).idle(1).consume(handler)
    assert seen == [*range(60), 60, *range(60, 100)]


def test_a_lost_lease_is_reported_and_its_window_redelivered(queen: Queen, stream: StreamApi) -> None:
    warmed_up(stream, 20)
    events: list[Event] = []
    stolen: list[str] = []

    def handler(window: Window) -> None:
        if len(events) > 20 and not stolen:
            stream.expire_leases()
            stolen.append(stream.poll()["key"])

    queen.consumer(stream.name, "g", on_event=events.append).process(handler, idle=1)
    kinds = Counter(event.kind for event in events)
    assert kinds["done"] >= 19
    assert kinds["delivered"] == kinds["done"] + kinds["lost"]


def test_stop_releases_unhandled_messages(queen: Queen, queue: str) -> None:
    queen.queue(queue).push(list(range(200)))
    seen: list[int] = []

    def handler(batch: Batch) -> None:
        seen.append(batch[0].data)
        if len(seen) == 100:
            queen.stop()

    queen.queue(queue).consume(handler)
    assert seen == list(range(100))
    assert take(queen, queue, 200).values("data") == list(range(100, 200))
