"""A consumer of windows: takes, handles, renews and answers them."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from queenspark import Consumer, Event, InvalidValue, LeaseLost, Outgoing, Queen, Unreachable, Window
from tests.broker_process import Broker
from tests.client.conftest import sealed, stored
from tests.client.proxy import CUT_AFTER, CUT_BEFORE, Fault, Proxy
from tests.streams.stream_api import StreamApi
from tests.wire.api import Api
from tests.wire.deadline import eventually

SOON = 10
KINDS = pytest.mark.parametrize("kind", ["sync", "sync-threads", "async", "async-plain"])


@pytest.fixture
def consumer(queen: Queen, stream: StreamApi) -> Consumer:
    """A consumer of the stream in the group g."""
    return queen.consumer(stream.name, "g")


def polled(consumer: Consumer, **more: Any) -> Window:
    window = consumer.poll(wait=SOON, **more)
    assert window is not None
    return window


def lease(stream: StreamApi, milliseconds: int) -> None:
    stream.define(partitioned=True, window_lease_timeout_ms=milliseconds)


# poll


def test_a_window_has_all_that_the_broker_knows(consumer: Consumer, stream: StreamApi) -> None:
    id_ = sealed(stream, {"user": "anna", "n": 1}, {"user": "bert", "n": 2}, key="room")
    window = polled(consumer)
    assert (window.id, window.key, window.stream, window.namespace) == (id_, "room", stream.name, "tests")
    assert (window.group, window.count, len(window), window.revision) == ("g", 2, 2, 1)
    assert (window.version, window.retries, window.replaces) == (1, 0, [])
    assert window.start.tzinfo is not None
    assert window.start <= window.messages[0].created_at < window.end
    assert window.all_messages.values("data.n") == [1, 2] == window.values("data.n")
    assert window.map(lambda message: message.data["user"]) == ["anna", "bert"]
    assert window.filter(lambda message: message.data["n"] > 1).values("data.user") == ["bert"]
    assert list(window.group_by("data.user")) == ["anna", "bert"]
    assert window.aggregate(count=True, sum="data.n") == {"count": 2, "sum": 3}
    assert window.to_arrow().num_rows == window.to_polars().height == len(window.to_pandas()) == 2
    assert bool(window)
    assert "room" in repr(window)


def test_without_a_window_a_poll_is_none_in_time(consumer: Consumer, stream: StreamApi) -> None:
    began = time.monotonic()
    assert consumer.poll(wait=0) is None
    assert consumer.poll(wait="300ms") is None
    assert time.monotonic() - began < 5


def test_an_acked_window_does_not_come_again(consumer: Consumer, stream: StreamApi) -> None:
    sealed(stream, 1)
    window = polled(consumer)
    window.ack()
    window.ack()
    assert window.answered
    assert stream.empty()
    assert not stream.empty("another group")


def test_a_nacked_window_comes_again_and_then_is_a_dead_letter(consumer: Consumer, stream: StreamApi) -> None:
    sealed(stream, 1)
    for retries in range(4):
        window = polled(consumer)
        assert window.retries == retries
        window.nack("not today")
        stream.end_waits()
    assert stream.empty()
    dead = stream.api.read("/api/v1/dlq", queue=stream.resource()["windowQueue"])["messages"]
    assert [letter["errorMessage"] for letter in dead] == ["not today"]


def test_a_released_window_comes_again_at_once_and_has_not_failed(
    consumer: Consumer, stream: StreamApi
) -> None:
    id_ = sealed(stream, 1)
    polled(consumer).release()
    again = polled(consumer)
    assert (again.id, again.retries) == (id_, 0)
    stream.expire_leases()
    polled(consumer).ack()
    with pytest.raises(LeaseLost):
        again.release()


def test_a_lost_lease_cannot_be_answered_or_renewed(consumer: Consumer, stream: StreamApi) -> None:
    sealed(stream, 1)
    slow = polled(consumer)
    stream.expire_leases()
    other = polled(consumer)
    for answer in (slow.ack, slow.nack, slow.renew):
        with pytest.raises(LeaseLost):
            answer()
    other.renew(90)
    other.ack()


def test_a_large_window_comes_in_pages(consumer: Consumer, stream: StreamApi) -> None:
    sealed(stream, *range(7))
    window = polled(consumer, max_messages=3)
    assert [page.values("data") for page in window.pages()] == [[0, 1, 2], [3, 4, 5], [6]]
    with pytest.raises(InvalidValue, match="pages"):
        window.aggregate(count=True)
    window.ack()


# process


def test_process_handles_and_acks_every_window(consumer: Consumer, stream: StreamApi) -> None:
    ids = [sealed(stream, number, key=key) for number, key in enumerate("abc")]
    seen: list[str] = []
    consumer.process(lambda window: seen.append(window.id), limit=3)
    assert sorted(seen) == ids
    consumer.process(print, idle=0)
    assert stream.empty()


def test_limit_counts_windows_not_messages(consumer: Consumer, stream: StreamApi) -> None:
    for key in "abc":
        sealed(stream, 1, 2, 3, key=key)
    seen: list[str] = []
    consumer.process(lambda window: seen.append(window.key), limit=2)
    assert len(seen) == 2
    assert len(stream.drain()) == 1


def test_a_handler_that_raises_nacks_with_the_reason(queen: Queen, stream: StreamApi) -> None:
    sealed(stream, 1)
    events: list[Event] = []
    seen: list[int] = []

    def handler(window: Window) -> None:
        seen.append(window.retries)
        stream.api.http.get("/health")
        raise ValueError("bad window")

    consumer = queen.consumer(stream.name, "g", on_event=events.append)
    for _ in range(4):
        consumer.process(handler, limit=1)
        stream.end_waits()
    assert seen == [0, 1, 2, 3]
    assert [(event.kind, str(event.error)) for event in events[:2]] == [
        ("delivered", "None"),
        ("failed", "bad window"),
    ]
    dead = stream.api.read("/api/v1/dlq", queue=stream.resource()["windowQueue"])["messages"]
    assert [letter["errorMessage"] for letter in dead] == ["ValueError: bad window"]


def test_hooks_hear_of_everything_in_order(queen: Queen, stream: StreamApi) -> None:
    lease(stream, 3000)
    id_ = sealed(stream, 1, 2)
    events: list[Event] = []
    renewed = threading.Event()

    def listen(event: Event) -> None:
        events.append(event)
        if event.kind == "renewed":
            renewed.set()

    consumer = queen.consumer(stream.name, "g", on_event=listen)
    consumer.process(lambda window: renewed.wait(SOON), limit=1)
    assert [event.kind for event in events] == ["delivered", "renewed", "done"]
    assert {(event.name, event.group, event.id, event.messages) for event in events} == {
        (stream.name, "g", id_, 2)
    }
    assert events[0].seconds < events[1].seconds < events[2].seconds


def test_several_windows_are_handled_at_once_one_of_each_key(consumer: Consumer, stream: StreamApi) -> None:
    for key in "abc":
        sealed(stream, 1, key=key)
    meeting = threading.Barrier(3, timeout=SOON)
    consumer.process(lambda window: meeting.wait(), concurrency=3, limit=3)
    assert stream.empty()


def test_stop_in_a_handler_finishes_its_window_and_takes_no_further_one(
    consumer: Consumer, stream: StreamApi
) -> None:
    first = sealed(stream, 1, key="a")
    sealed(stream, 2, key="b")
    seen: list[str] = []

    def handler(window: Window) -> None:
        seen.append(window.id)
        consumer.stop()

    consumer.process(handler)
    assert seen == [first]
    assert stream.drain() != []


def test_without_auto_ack_the_handler_answers(consumer: Consumer, stream: StreamApi) -> None:
    sealed(stream, 1, key="a")
    sealed(stream, 2, key="b")

    def handler(window: Window) -> None:
        if window.key == "a":
            window.ack()

    consumer.process(handler, limit=2, auto_ack=False)
    stream.expire_leases()
    assert polled(consumer).key == "b"


@pytest.mark.parametrize("argument", ["concurrency", "limit"])
def test_numbers_that_make_no_sense_are_named(consumer: Consumer, argument: str) -> None:
    wrong: dict[str, Any] = {argument: 0}
    with pytest.raises(InvalidValue, match=f"^{argument} is 0"):
        consumer.process(print, **wrong)


# leases


def test_18_a_lease_is_renewed_at_a_third_of_its_time(queen: Queen, stream: StreamApi) -> None:
    """The handler takes longer than two leases; the window is delivered once, and to nobody else."""
    lease(stream, 1500)
    id_ = sealed(stream, 1)
    seen: list[str] = []
    events: list[Event] = []
    other = queen.consumer(stream.name, "g")
    thief = threading.Thread(target=other.process, args=[lambda window: seen.append("stolen")])

    def handler(window: Window) -> None:
        seen.append(window.id)
        thief.start()
        time.sleep(4)

    queen.consumer(stream.name, "g", on_event=events.append).process(handler, limit=1)
    other.stop()
    thief.join(SOON)
    assert seen == [id_]
    assert events[-1].kind == "done"
    times = [event.seconds for event in events if event.kind == "renewed"]
    assert len(times) >= 4
    assert 0.4 < times[0] < 1.5


def test_18_a_slow_renewal_is_not_the_end_of_other_leases(
    far: Queen, proxy: Proxy, stream: StreamApi
) -> None:
    lease(stream, 2400)
    for key in "ab":
        sealed(stream, 1, key=key)
    proxy.fail("/extend", Fault(hold=4))
    meeting = threading.Barrier(2, timeout=SOON)
    events: list[Event] = []

    def handler(window: Window) -> None:
        meeting.wait()
        time.sleep(3)

    far.consumer(stream.name, "g", on_event=events.append).process(handler, concurrency=2, limit=2)
    assert [event.kind for event in events if event.kind in ("done", "lost")] == ["done", "done"]


def test_19_the_broker_answers_a_poll_before_the_client_gives_up(stream: StreamApi, proxy: Proxy) -> None:
    with Queen(proxy.url, timeout=1.5, retries=0) as queen:
        began = time.monotonic()
        assert queen.consumer(stream.name, "g").poll(wait=2) is None
        assert queen.queue(stream.queue).group("g").start("latest").pop(wait=2).unanswered == []
        assert time.monotonic() - began > 3
    assert proxy.count("/poll") == 1


ACK_FAULTS = pytest.mark.parametrize(
    "faults",
    [
        [CUT_AFTER],
        [Fault(truncate=10)],
        [Fault(status=503), CUT_BEFORE, CUT_AFTER],
        [CUT_AFTER, *[CUT_BEFORE] * 7],
        [Fault(delay=3)],
    ],
    ids=["lost answer", "truncated answer", "several", "beyond the retries", "late answer"],
)


@ACK_FAULTS
def test_19_a_network_error_in_the_ack_is_never_answered_with_a_nack(
    far: Queen, proxy: Proxy, stream: StreamApi, faults: list[Fault]
) -> None:
    sealed(stream, 1)
    proxy.fail("/stream/ack", *faults)
    events: list[Event] = []
    seen: list[str] = []
    far.consumer(stream.name, "g", on_event=events.append).process(
        lambda window: seen.append(window.id), limit=1
    )
    assert len(seen) == 1
    assert [event.kind for event in events] == ["delivered", "done"]
    assert stream.end_waits() == []
    assert stream.empty()


def test_19_neither_when_the_handler_acks_by_itself(far: Queen, proxy: Proxy, stream: StreamApi) -> None:
    """No broker can be reached: the handler's ack raises, and the window is left to its lease."""
    sealed(stream, 1)
    proxy.fail("/stream/ack", *[CUT_BEFORE] * 4)
    events: list[Event] = []

    def handler(window: Window) -> None:
        with pytest.raises(Unreachable):
            window.ack()
        raise ValueError("could not ack")

    far.consumer(stream.name, "g", on_event=events.append).process(handler, limit=1)
    assert [event.kind for event in events] == ["delivered", "unanswered"]
    assert proxy.count("/stream/ack") == 4
    stream.expire_leases()
    assert stream.poll()["retryCount"] == 0


def test_19_nor_a_message(far: Queen, proxy: Proxy, queue: str, api: Api) -> None:
    far.queue(queue).create(retry_limit=0)
    far.queue(queue).push([1, 2])
    proxy.fail("/ack", *[CUT_BEFORE] * 4)

    def handler(message: Any) -> None:
        message.ack()

    far.queue(queue).batch(2).each().limit(2).consume(handler)
    assert far.queue(queue).dead_letters() == []


def test_an_answer_is_tried_for_as_long_as_the_lease_lasts(
    far: Queen, proxy: Proxy, stream: StreamApi
) -> None:
    lease(stream, 1500)
    sealed(stream, 1)
    events: list[Event] = []

    def handler(window: Window) -> None:
        proxy.away()

    def listen(event: Event) -> None:
        events.append(event)
        if event.kind == "unanswered":
            proxy.back()

    consumer = far.consumer(stream.name, "g", on_event=listen)
    consumer.process(handler, limit=1)
    assert (events[0].kind, events[-1].kind) == ("delivered", "unanswered")
    assert isinstance(events[-1].error, Unreachable)
    assert stream.poll()["retryCount"] == 0


def test_a_broker_that_never_takes_an_answer_does_not_hold_the_consumer_for_ever(
    far: Queen, proxy: Proxy, stream: StreamApi
) -> None:
    """Although it goes on renewing the lease."""
    lease(stream, 1000)
    sealed(stream, 1)
    events: list[Event] = []
    proxy.choose = lambda line: Fault(status=500) if "/stream/ack" in line else None
    far.consumer(stream.name, "g", on_event=events.append).process(lambda window: None, limit=1)
    assert events[-1].kind == "unanswered"


def test_results_wait_for_room_in_their_queue(queen: Queen, stream: StreamApi, queue: str, api: Api) -> None:
    lease(stream, 1000)
    sealed(stream, 1)
    queen.queue(queue).create(max_size=1)
    queen.queue(queue).push("first")
    events: list[Event] = []

    def listen(event: Event) -> None:
        events.append(event)
        if [each.kind for each in events].count("renewed") == 5:
            api.drain(queue, 1)

    consumer = queen.consumer(stream.name, "g", on_event=listen)
    consumer.process(lambda window: "second", into=queue, limit=1)
    assert events[-1].kind == "done"
    assert stored(api, queue) == ["first", "second"]


# exactly once


@pytest.mark.parametrize(
    "faults",
    [[], [CUT_AFTER], [Fault(truncate=5)], [CUT_BEFORE, Fault(status=503)], [CUT_AFTER, *[CUT_BEFORE] * 7]],
    ids=["no fault", "lost answer", "truncated answer", "lost request", "beyond the retries"],
)
def test_results_are_pushed_exactly_once(
    far: Queen, proxy: Proxy, stream: StreamApi, queue: str, api: Api, faults: list[Fault]
) -> None:
    sealed(stream, {"n": 1}, {"n": 2}, key="room")
    proxy.fail("/transaction", *faults)
    events: list[Event] = []
    far.consumer(stream.name, "g", on_event=events.append).process(
        lambda window: window.aggregate(sum="data.n"), into=queue, limit=1
    )
    assert [event.kind for event in events] == ["delivered", "done"]
    assert stored(api, queue) == [{"sum": 3}]
    (message,) = api.take(queue)
    assert message["partition"] == "room"
    assert stream.empty()


def test_a_list_is_many_results_and_none_is_none(
    consumer: Consumer, stream: StreamApi, queue: str, api: Api
) -> None:
    answers: dict[str, Any] = {"a": [1, Outgoing(2, partition="other")], "b": None, "c": [], "d": 0}
    for key in answers:
        sealed(stream, 1, key=key)
    consumer.process(lambda window: answers[window.key], into=queue, limit=4)
    assert sorted(stored(api, queue)) == [0, 1, 2]
    assert stream.empty()


@pytest.mark.parametrize("result", [object(), "x" * 9_000_000], ids=["no JSON", "too large"])
def test_a_result_that_cannot_be_stored_is_a_failure(
    queen: Queen, stream: StreamApi, queue: str, result: Any
) -> None:
    """Not a window that comes again for ever and never becomes a dead letter."""
    sealed(stream, 1)
    events: list[Event] = []
    queen.consumer(stream.name, "g", on_event=events.append).process(
        lambda window: result, into=queue, limit=1
    )
    assert [event.kind for event in events] == ["delivered", "failed"]
    assert len(stream.end_waits()) == 1
    assert stream.poll()["retryCount"] == 1


def test_a_consumer_that_was_too_slow_pushes_nothing(
    queen: Queen, stream: StreamApi, queue: str, api: Api
) -> None:
    sealed(stream, 1)
    events: list[Event] = []

    def handler(window: Window) -> str:
        stream.expire_leases()
        stream.ack(stream.poll())
        return "too late"

    queen.consumer(stream.name, "g", on_event=events.append).process(handler, into=queue, limit=1)
    assert [event.kind for event in events] == ["delivered", "lost"]
    assert stored(api, queue) == []


# programs


class Program:
    """`tests.client.programs` as a process."""

    def __init__(self, kind: str, url: str, stream: str, seconds: float) -> None:
        command = [sys.executable, "-m", "tests.client.programs", kind, url, stream, str(seconds)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def says(self, text: str) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline().startswith(text)

    def end(self) -> tuple[int, str]:
        """Its exit code and the rest of what it said."""
        out, _ = self.process.communicate(timeout=30)
        return self.process.returncode, out


@pytest.fixture
def programs() -> Iterator[list[Program]]:
    """Programs that are ended after the test."""
    started: list[Program] = []
    yield started
    for program in started:
        if program.process.poll() is None:
            program.process.kill()
        program.process.communicate()


def start(programs: list[Program], kind: str, broker: Broker, stream: StreamApi, seconds: float) -> Program:
    programs.append(Program(kind, broker.url, stream.name, seconds))
    programs[-1].says("got")
    return programs[-1]


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        ("sync", signal.SIGINT),
        ("sync-threads", signal.SIGINT),
        ("sync-threads", signal.SIGTERM),
        ("async", signal.SIGINT),
        ("async-plain", signal.SIGINT),
    ],
)
def test_a_signal_lets_the_window_in_hand_be_finished_and_no_further_one_be_taken(
    programs: list[Program], shared_broker: Broker, stream: StreamApi, kind: str, number: signal.Signals
) -> None:
    for value in range(3):
        sealed(stream, value)
    program = start(programs, kind, shared_broker, stream, 0.7)
    program.process.send_signal(number)
    code, said = program.end()
    assert code == 0
    assert [line.split()[0] for line in said.splitlines()] == ["noticed", "did", "end"]
    assert len(stream.drain()) == 2


@KINDS
def test_a_second_interrupt_ends_it_at_once(
    programs: list[Program], shared_broker: Broker, stream: StreamApi, kind: str
) -> None:
    lease(stream, 1000)
    sealed(stream, 1)
    program = start(programs, kind, shared_broker, stream, 60)
    program.process.send_signal(signal.SIGINT)
    program.says("noticed")  # two at the same moment would be one
    began = time.monotonic()
    program.process.send_signal(signal.SIGINT)
    code, said = program.end()
    assert time.monotonic() - began < SOON
    assert code != 0
    assert said == ""
    assert stream.poll()["retryCount"] == 0


def test_a_signal_at_any_moment_of_a_wait_does_no_harm() -> None:
    """The handler of a signal runs in the thread that waits, and raises the flag that it waits for."""
    program = """
import signal
from queenspark.client.sync.tasks import Flag

flag = Flag()
signal.signal(signal.SIGALRM, lambda *_: flag.set())
signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
for _ in range(3000):
    flag = Flag()
    flag.wait(0.0004)
signal.setitimer(signal.ITIMER_REAL, 0)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)


def test_a_window_comes_again_when_its_consumer_is_killed(
    programs: list[Program], shared_broker: Broker, stream: StreamApi
) -> None:
    lease(stream, 1000)
    id_ = sealed(stream, 1)
    program = start(programs, "sync", shared_broker, stream, 60)
    program.process.kill()
    window = stream.poll()
    assert (window["id"], window["retryCount"]) == (id_, 0)


def test_a_broker_that_comes_back_is_used_again(far: Queen, proxy: Proxy, stream: StreamApi) -> None:
    seen: list[Any] = []
    kinds: list[str] = []

    def listen(event: Event) -> None:
        kinds.append(event.kind)

    consumer = far.consumer(stream.name, "g", on_event=listen)
    proxy.away()
    running = threading.Thread(
        target=lambda: consumer.process(lambda window: seen.append(window.key), limit=1)
    )
    running.start()
    eventually(lambda: "unreachable" in kinds)
    sealed(stream, 1, key="after")
    proxy.back()
    running.join(SOON)
    assert seen == ["after"]
