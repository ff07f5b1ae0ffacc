"""Held leases are renewed, and an ack that does not get through never becomes a nack."""

import os
import re
import threading
import time
from typing import Any

import pytest

from queenspark import Event, Queen, Unreachable, Window
from tests.client.conftest import SOON, lease, sealed, stored
from tests.client.proxy import CUT_AFTER, CUT_BEFORE, Fault, Proxy
from tests.streams.stream_api import StreamApi
from tests.wire.api import Api
from tests.wire.deadline import eventually


def test_18_a_lease_is_renewed_at_a_third_of_its_time(queen: Queen, stream: StreamApi) -> None:
    """The handler takes longer than two leases; the window is delivered once, and to no other consumer."""
    lease(stream, 1500)
    id_ = sealed(stream, 1)
    seen: list[str] = []
    events: list[Event] = []
    other = queen.consumer(stream.name, "g")
    thief = threading.Thread(target=other.process, args=[lambda window: seen.append("stolen")])

    def handler(window: Window) -> None:
        seen.append(window.id)
        thief.start()
        eventually(lambda: [event.kind for event in events].count("renewed") >= 7)

    queen.consumer(stream.name, "g", on_event=events.append).process(handler, limit=1)
    other.stop()
    thief.join(SOON)
    assert seen == [id_]
    assert events[-1].kind == "done"
    times = [event.seconds for event in events if event.kind == "renewed"]
    assert len(times) >= 4
    assert times[-1] > 3
    assert 0.45 < times[0] < 1.5


def test_18_a_slow_renewal_does_not_delay_those_of_other_leases(proxy: Proxy, stream: StreamApi) -> None:
    lease(stream, 3000)
    for key in "ab":
        sealed(stream, 1, key=key)
    proxy.fail("/extend", Fault(hold=30))
    meeting = threading.Barrier(2, timeout=SOON)
    events: list[Event] = []

    def handler(window: Window) -> None:
        meeting.wait()
        time.sleep(3.5)  # the work: longer than the lease

    with Queen(proxy.url, timeout=30) as queen:
        consumer = queen.consumer(stream.name, "g", on_event=events.append)
        consumer.process(handler, concurrency=2, limit=2)
    assert [event.kind for event in events if event.kind in ("done", "lost")] == ["done", "done"]


def test_19_a_poll_ends_before_the_client_times_out(stream: StreamApi, proxy: Proxy) -> None:
    with Queen(proxy.url, timeout=1, retries=0) as queen:
        began = time.monotonic()
        assert queen.consumer(stream.name, "g").poll(wait=1.5) is None
        assert queen.queue(stream.queue).group("g").start("latest").pop(wait=1.5).unacked == []
        assert time.monotonic() - began > 2.5
    assert proxy.count("/poll") == 1


ACK_FAULTS = pytest.mark.parametrize(
    "faults",
    [
        [CUT_AFTER],
        [Fault(truncate=10)],
        [Fault(status=503), CUT_BEFORE, CUT_AFTER],
        [CUT_AFTER, *[CUT_BEFORE] * 7],
        [Fault(delay=30)],
    ],
    ids=["lost response", "truncated response", "several", "beyond the retries", "late response"],
)


@ACK_FAULTS
def test_19_a_network_error_in_the_ack_is_never_followed_by_a_nack(
    far: Queen, proxy: Proxy, stream: StreamApi, faults: list[Fault]
) -> None:
    sealed(stream, 1)
    proxy.fail("/ack", *faults)
    events: list[Event] = []
    seen: list[str] = []
    far.consumer(stream.name, "g", on_event=events.append).process(
        lambda window: seen.append(window.id), limit=1
    )
    assert len(seen) == 1
    assert [event.kind for event in events] == ["delivered", "done"]
    assert stream.end_waits() == []
    assert stream.empty()


def test_19_a_network_error_in_a_manual_ack_is_never_followed_by_a_nack(
    far: Queen, proxy: Proxy, stream: StreamApi
) -> None:
    """No broker can be reached: the handler's ack raises, and the window is left to its lease."""
    sealed(stream, 1)
    proxy.fail("/ack", *[CUT_BEFORE] * 4)
    events: list[Event] = []

    def handler(window: Window) -> None:
        with pytest.raises(Unreachable):
            window.ack()
        raise ValueError("could not ack")

    far.consumer(stream.name, "g", on_event=events.append).process(handler, limit=1)
    assert [event.kind for event in events] == ["delivered", "unacked"]
    assert proxy.count("/ack") == 4
    stream.expire_leases()
    assert stream.poll()["retryCount"] == 0


def test_19_a_network_error_in_the_ack_of_a_message_is_never_followed_by_a_nack(
    far: Queen, proxy: Proxy, queue: str, api: Api
) -> None:
    far.queue(queue).create(retry_limit=0)
    far.queue(queue).push([1, 2])
    proxy.fail("/ack", *[CUT_BEFORE] * 4)

    def handler(message: Any) -> None:
        message.ack()

    far.queue(queue).batch(2).each().limit(2).consume(handler)
    assert far.queue(queue).dead_letters() == []


def test_an_ack_is_retried_for_as_long_as_the_lease_lasts(
    far: Queen, proxy: Proxy, stream: StreamApi
) -> None:
    lease(stream, 1500)
    sealed(stream, 1)
    events: list[Event] = []

    def handler(window: Window) -> None:
        proxy.away()

    def listen(event: Event) -> None:
        events.append(event)
        if event.kind == "unacked":
            proxy.back()

    consumer = far.consumer(stream.name, "g", on_event=listen)
    consumer.process(handler, limit=1)
    assert (events[0].kind, events[-1].kind) == ("delivered", "unacked")
    assert isinstance(events[-1].error, Unreachable)
    assert stream.poll()["retryCount"] == 0


def test_a_broker_that_never_accepts_an_ack_does_not_block_the_consumer_forever(
    far: Queen, proxy: Proxy, stream: StreamApi
) -> None:
    """Although it keeps renewing the lease."""
    lease(stream, 1000)
    sealed(stream, 1)
    events: list[Event] = []
    proxy.choose = lambda line: Fault(status=500) if "/ack" in line else None
    far.consumer(stream.name, "g", on_event=events.append).process(lambda window: None, limit=1)
    assert events[-1].kind == "unacked"


def test_results_wait_for_room_in_their_queue(queen: Queen, stream: StreamApi, queue: str, api: Api) -> None:
    lease(stream, 1500)
    sealed(stream, 1)
    queen.queue(queue).create(max_size=1)
    queen.queue(queue).push("first")
    events: list[Event] = []

    def listen(event: Event) -> None:
        events.append(event)
        if [each.kind for each in events].count("renewed") == 4:
            api.drain(queue, 1)

    consumer = queen.consumer(stream.name, "g", on_event=listen)
    consumer.process(lambda window: "second", into=queue, limit=1)
    assert events[-1].kind == "done"
    assert stored(api, queue) == ["first", "second"]


def test_a_client_gives_its_name_to_its_leases(api: Api, queen: Queen, stream: StreamApi, queue: str) -> None:
    """Of messages and of windows."""
    group = f"g-{queue}"
    queen.queue(queue).push(1)
    batch = queen.queue(queue).group(group).pop(wait=SOON)
    sealed(stream, 1)
    window = queen.consumer(stream.name, group).poll(wait=SOON)
    assert batch
    assert window is not None
    queues = api.get(f"/api/v1/consumer-groups/{group}").json()["queues"]
    holders = {place["leaseHolder"] for each in queues for place in each["places"] if place["leased"]}
    assert len(queues) == 2
    (holder,) = holders
    assert re.fullmatch(rf".+-{os.getpid()}-[0-9a-f]{{6}}", holder)
