"""Several brokers, broken connections, late and truncated responses: which requests are retried."""

import random
import threading
import time
from collections import Counter
from typing import Any

import pytest

from queenspark import Batch, Event, InvalidValue, Queen, QueenError, QueueFull, Unavailable, Unreachable
from queenspark.client.brokers import delay
from tests.broker_process import Broker, free_port
from tests.client.conftest import stored
from tests.client.proxy import CUT_AFTER, CUT_BEFORE, Fault, Proxy
from tests.horizon import wait_for_horizon
from tests.wire.api import Api

SOON = 10


# several brokers


def test_the_next_broker_is_asked_when_one_is_away(shared_broker: Broker, queue: str, api: Api) -> None:
    nobody = f"http://127.0.0.1:{free_port()}"
    with Queen([nobody, shared_broker.url], retries=1) as queen:
        for number in range(3):
            queen.queue(queue).push(number)
        wait_for_horizon(shared_broker.database_url)
        assert queen.queue(queue).batch(9).pop(wait=SOON).values("data") == [0, 1, 2]


def test_the_broker_that_responded_last_is_tried_first(shared_broker: Broker, queue: str) -> None:
    with (
        Proxy(shared_broker.port) as first,
        Proxy(shared_broker.port) as second,
        Queen([first.url, second.url], timeout=30) as queen,
    ):
        queen.queue(queue).push(1)
        first.away()
        for number in range(3):
            queen.queue(queue).push(number)
        first.back()
        queen.queue(queue).push(4)
        assert (len(first.requests), len(second.requests)) == (1, 4)
        second.fail("/push", Fault(status=503))
        queen.queue(queue).push(5)
        assert (len(first.requests), len(second.requests)) == (2, 5)


def test_a_consumer_goes_on_at_the_other_broker(shared_broker: Broker, queue: str) -> None:
    with Proxy(shared_broker.port) as first, Queen([first.url, shared_broker.url], timeout=2) as queen:
        queen.queue(queue).push(list(range(6)))
        seen: list[Any] = []

        def handler(batch: Batch) -> None:
            seen.extend(batch.values("data"))
            first.away()

        queen.queue(queue).batch(2).limit(6).consume(handler)
        assert seen == list(range(6))


def test_an_outage_is_not_taken_for_an_empty_queue(far: Queen, proxy: Proxy, queue: str) -> None:
    far.queue(queue).push(1)
    proxy.away()
    kinds: list[str] = []
    seen: list[Any] = []

    def listen(event: Event) -> None:
        kinds.append(event.kind)
        if event.kind == "unreachable" and len(kinds) == 2:
            proxy.back()

    far.queue(queue).idle(0.1).consume(lambda batch: seen.append(batch[0].data), on_event=listen)
    assert seen == [1]


@pytest.mark.parametrize(
    "url",
    ["localhost:6632", "ftp://x", "", [], ["http://127.0.0.1", "x"], "http://", "http://127.0.0.1:port"],
)
def test_an_invalid_url_is_refused(url: Any) -> None:
    with pytest.raises(InvalidValue, match="url is "):
        Queen(url)


def test_the_url_may_come_from_the_environment(
    shared_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUEENSPARK_URL", shared_broker.url)
    with Queen() as queen:
        assert "queues" in queen.admin.status()


# retries


@pytest.mark.parametrize(
    "fault",
    [CUT_BEFORE, CUT_AFTER, Fault(truncate=0), Fault(truncate=100), Fault(status=503), Fault(status=429),
     Fault(status=500), Fault(delay=30), Fault(hold=30)],
    ids=str,
)  # fmt: skip
def test_a_push_is_retried_until_it_gets_a_response_and_stored_once(
    far: Queen, proxy: Proxy, queue: str, api: Api, fault: Fault
) -> None:
    proxy.fail("/push", fault)
    far.queue(queue).push([1, 2])
    assert proxy.count("/push") == 2
    assert stored(api, queue) == [1, 2]


def test_messages_of_a_pop_with_a_lost_response_go_to_the_next(far: Queen, proxy: Proxy, queue: str) -> None:
    far.queue(queue).push(1)
    proxy.fail("/pop", CUT_BEFORE)
    assert far.queue(queue).pop(wait=SOON).values("data") == [1]


def test_a_pop_with_auto_ack_is_not_repeated_so_that_a_loss_is_known(
    far: Queen, proxy: Proxy, queue: str
) -> None:
    far.queue(queue).push([1, 2])
    proxy.fail("/pop", CUT_AFTER)
    with pytest.raises(Unreachable) as unreachable:
        far.queue(queue).pop(wait=SOON, auto_ack=True)
    assert unreachable.value.maybe_done
    assert proxy.count("/pop") == 1
    assert far.queue(queue).pop(wait=SOON, auto_ack=True).values("data") == [2]


def test_an_ack_with_a_lost_response_is_retried(far: Queen, proxy: Proxy, queue: str) -> None:
    far.queue(queue).push(1)
    batch = far.queue(queue).pop(wait=SOON)
    proxy.fail("/ack", CUT_AFTER, Fault(truncate=3))
    batch.ack()
    assert batch.unacked == []
    assert len(far.queue(queue).pop()) == 0


def test_after_the_retries_the_error_says_whether_it_may_have_happened(far: Queen, proxy: Proxy) -> None:
    proxy.fail("/push", *[CUT_BEFORE] * 4)
    with pytest.raises(Unreachable, match="no broker at") as unreachable:
        far.queue("q").push(1)
    assert unreachable.value.maybe_done
    assert proxy.count("/push") == 4
    proxy.away()
    with pytest.raises(Unreachable, match="queenspark up") as unreachable:
        far.queue("q").push(1)
    assert not unreachable.value.maybe_done
    proxy.back()


@pytest.mark.parametrize(("status", "kind"), [(503, Unavailable), (429, QueueFull)])
def test_an_unavailable_broker_is_retried_but_not_forever(
    far: Queen, proxy: Proxy, queue: str, status: int, kind: type[QueenError]
) -> None:
    proxy.fail("/push", *[Fault(status=status)] * 4)
    with pytest.raises(kind, match="told to"):
        far.queue(queue).push(1)
    assert proxy.count("/push") == 4


def test_a_late_response_is_not_awaited_beyond_the_timeout(proxy: Proxy, queue: str) -> None:
    with Queen(proxy.url, timeout="300ms", retries=0) as queen:
        proxy.fail("/push", Fault(delay=30))
        began = time.monotonic()
        with pytest.raises(Unreachable, match="did not respond in time"):
            queen.queue(queue).push(1)
        assert time.monotonic() - began < 5


def test_a_response_of_another_server_is_reported(proxy: Proxy, queue: str) -> None:
    with Queen(proxy.url) as queen:
        proxy.fail("/push", Fault(status=200))
        with pytest.raises(QueenError, match="is not a Queenspark broker"):
            queen.queue(queue).push(1)


def test_delays_grow_and_differ() -> None:
    assert all(0.05 <= delay(1) <= 0.1 for _ in range(100))
    assert all(2.5 <= delay(failures) <= 5.0 for failures in (7, 20, 10_000))
    assert len({delay(3) for _ in range(10)}) > 1


# soak


def test_nothing_is_lost_and_nothing_acked_that_was_not_processed(
    proxy: Proxy, queue: str, api: Api, shared_broker: Broker
) -> None:
    """Producers and consumers through a proxy that misbehaves at every fourth request; some handlers fail."""
    dice = random.Random(4711)
    kinds = [
        CUT_BEFORE, CUT_AFTER, Fault(truncate=0), Fault(truncate=60), Fault(status=503), Fault(delay=0.3),
    ]  # fmt: skip

    def choose(line: str) -> Fault | None:
        bad = 0.25 if time.monotonic() < over else 0.05
        return dice.choice(kinds) if dice.random() < bad else None

    with Queen(shared_broker.url) as near:
        near.queue(queue).create(lease_time=1, retry_delay=0, retry_limit=1000)
    over = time.monotonic() + 4
    proxy.choose = choose
    handled: Counter[str] = Counter()
    lock = threading.Lock()
    fail = random.Random(42)

    def produce(name: str, buffered: bool, pushed: list[str]) -> None:
        with Queen(proxy.url, timeout=1, retries=1000) as queen:
            target = queen.queue(queue).partition(name)
            if buffered:
                target = target.buffered()
            while time.monotonic() < over:
                payload = f"{name}-{len(pushed)}"
                target.push(payload)
                pushed.append(payload)
                if buffered:
                    time.sleep(0.005)

    def consume(each: bool) -> None:
        def handler(given: Any) -> None:
            with lock:
                if fail.random() < 0.1:
                    raise ValueError("at times")
                handled.update([given.data] if each else given.values("data"))

        with Queen(proxy.url, timeout=1, retries=2) as queen:
            source = queen.queue(queue).group("g").batch(20).concurrency(2).idle(2)
            (source.each() if each else source).consume(handler)

    pushed: list[list[str]] = [[], [], []]
    threads = [
        *(threading.Thread(target=produce, args=[f"p{n}", n == 2, pushed[n]]) for n in range(3)),
        *(threading.Thread(target=consume, args=[each]) for each in (True, False)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    everything = [payload for each in pushed for payload in each]
    assert len(everything) > 50
    assert sorted(stored(api, queue)) == sorted(everything)
    for number, own in enumerate(pushed):
        assert [payload for payload in stored(api, queue) if payload.startswith(f"p{number}")] == own
    assert api.read("/api/v1/dlq", queue=queue)["total"] == 0
    shown = api.read("/api/v1/consumer-groups/g")["queues"]
    assert [entry["lag"] for entry in shown if entry["queue"] == queue] == [0]
    assert handled.keys() == set(everything)
