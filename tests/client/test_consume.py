"""Consuming a queue: batches, single messages, workers, limits, and operations within a handler."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from queenspark import (
    Batch,
    Event,
    InvalidValue,
    LeasedMessage,
    Outgoing,
    Queen,
    Refused,
)
from queenspark.client.sync import crew
from queenspark.client.sync.acks import send_acks
from queenspark.client.sync.crew import Crew
from tests.client.conftest import SOON, take
from tests.wire.api import Api


def test_consume_hands_over_batches_and_acks_them(queen: Queen, queue: str) -> None:
    queen.queue(queue).push([1, 2, 3])
    seen: list[Any] = []
    queen.queue(queue).group("g").batch(2).idle(0.2).consume(lambda batch: seen.append(batch.values("data")))
    assert seen == [[1, 2], [3]]
    assert len(queen.queue(queue).group("g").pop()) == 0


def test_consume_each_hands_over_one_message_at_a_time(queen: Queen, queue: str) -> None:
    queen.queue(queue).push([1, 2, 3])
    seen: list[Any] = []
    queen.queue(queue).batch(2).each().limit(3).consume(lambda message: seen.append(message.data))
    assert seen == [1, 2, 3]
    assert len(queen.queue(queue).pop()) == 0


def test_a_message_that_fails_keeps_those_behind_it_waiting(queen: Queen, queue: str) -> None:
    """Also from other consumers, which would otherwise take them before the failure counts."""
    queen.queue(queue).create(retry_delay="300ms", retry_limit=2)
    queen.queue(queue).push([1, 2, 3, 4])
    seen: list[tuple[Any, int]] = []

    def handler(message: LeasedMessage) -> None:
        seen.append((message.data, message.retries))
        if message.data == 2:
            raise ValueError("never")

    queen.queue(queue).batch(4).each().concurrency(3).idle(1).consume(handler)
    assert seen == [(1, 0), (2, 0), (2, 1), (2, 2), (3, 0), (4, 0)]
    (dead,) = queen.queue(queue).dead_letters()
    assert (dead.data, dead.error_message, dead.retry_count) == (2, "ValueError: never", 3)


def test_a_batch_that_fails_is_redelivered_with_its_reason_kept(queen: Queen, queue: str) -> None:
    queen.queue(queue).create(retry_delay=0, retry_limit=1)
    queen.queue(queue).push([1, 2])
    events: list[Event] = []

    def handler(batch: Batch) -> None:
        for message in batch.filter(lambda message: message.data == 1):
            message.ack()
        raise KeyError("missing")

    queen.queue(queue).batch(9).idle(0.5).consume(handler, on_event=events.append)
    # A redelivery may start before the failure that caused it is reported.
    assert sorted(event.kind for event in events) == ["delivered"] * 2 + ["failed"] * 2
    assert all(isinstance(event.error, KeyError) for event in events if event.kind == "failed")
    (dead,) = queen.queue(queue).dead_letters()
    assert (dead.data, dead.error_message) == (2, "KeyError: 'missing'")
    assert dead.failed_at.tzinfo is not None


def test_a_reason_that_is_not_valid_unicode_is_kept_as_far_as_possible(queen: Queen, queue: str) -> None:
    """For example from a file name."""
    queen.queue(queue).create(retry_limit=0)
    queen.queue(queue).push([1, 2])

    def handler(batch: Batch) -> None:
        raise FileNotFoundError("a\udcff.txt")

    queen.queue(queue).limit(1).consume(handler, on_event=lambda event: None)
    assert queen.queue(queue).dead_letters()[0].error_message == "FileNotFoundError: a\\udcff.txt"
    with pytest.raises(InvalidValue, match="cannot be serialized"):
        queen.queue(queue).pop(wait=SOON).nack("a\udcff.txt")
    with pytest.raises(InvalidValue, match="cannot be serialized"):
        queen.queue("a\udcff").pop()


def test_without_auto_ack_the_handler_acks(queen: Queen, queue: str) -> None:
    queen.queue(queue).create(lease_time=1)
    queen.queue(queue).push([1, 2, 3])

    def handler(message: LeasedMessage) -> None:
        if message.data != 2:
            message.ack()

    queen.queue(queue).batch(9).each().auto_ack(False).limit(3).consume(handler)
    assert take(queen, queue).values("data") == [2]


def test_one_worker_works_in_the_thread_of_the_caller(queen: Queen, queue: str) -> None:
    """This allows handlers to use thread-local objects."""
    queen.queue(queue).push([1, 2])
    seen: list[int] = []
    one = queen.queue(queue).limit(1)
    one.consume(lambda batch: seen.append(threading.get_ident()))
    one.concurrency(2).consume(lambda batch: seen.append(threading.get_ident()))
    assert seen[0] == threading.get_ident()
    assert seen[1] != threading.get_ident()


def test_a_message_released_before_a_worker_was_ready_is_handled_later(
    queen: Queen, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a busy machine: the worker is late, and the release takes a while."""
    queen.queue(queue).push(1)
    next_run = Crew._next
    delays = iter([0.5])
    releases: list[int] = []

    def late_next(self: Any) -> Any:
        time.sleep(next(delays, 0))
        return next_run(self)

    def slow_acks(acks: Any) -> None:
        releases.append(len(acks))
        time.sleep(0.5)
        send_acks(acks)

    monkeypatch.setattr(Crew, "_next", late_next)
    monkeypatch.setattr(crew, "send_acks", slow_acks)
    seen: list[Any] = []
    queen.queue(queue).limit(1).consume(lambda batch: seen.append(batch[0].data))
    assert releases == [1]
    assert seen == [1]


def test_concurrent_handlers_have_different_partitions(queen: Queen, queue: str) -> None:
    for key in "abc":
        queen.queue(queue).partition(key).push([1, 2])
    meeting = threading.Barrier(3, timeout=SOON)
    seen: list[str] = []

    def handler(batch: Batch) -> None:
        meeting.wait()
        seen.append(batch[0].partition)

    queen.queue(queue).batch(2).concurrency(3).limit(6).consume(handler)
    assert sorted(seen) == ["a", "b", "c"]


def test_limit_takes_no_more_than_that(queen: Queen, queue: str) -> None:
    queen.queue(queue).push([1, 2, 3])
    seen: list[Any] = []
    queen.queue(queue).batch(9).limit(2).consume(lambda batch: seen.extend(batch.values("data")))
    assert seen == [1, 2]
    assert queen.queue(queue).pop(wait=SOON)[0].data == 3


def test_a_limit_is_shared_by_all_workers(queen: Queen, queue: str) -> None:
    """The first one asks for all of it, gets one message, and leaves the rest to the other."""
    queen.queue(queue).push([Outgoing(key, partition=key) for key in "ab"])
    meeting = threading.Barrier(2, timeout=SOON)
    queen.queue(queue).create(retry_limit=0)
    queen.queue(queue).batch(9).limit(2).concurrency(2).consume(lambda batch: meeting.wait())
    assert queen.queue(queue).dead_letters() == []


def test_idle_zero_consumes_existing_messages(queen: Queen, queue: str) -> None:
    queen.queue(queue).push([1, 2, 3])
    seen: list[Any] = []
    queen.queue(queue).idle(0).consume(lambda batch: seen.extend(batch.values("data")))
    assert seen == [1, 2, 3]


def test_a_handler_can_stop_its_consumer(queen: Queen, queue: str) -> None:
    queen.queue(queue).push([1, 2, 3])
    seen: list[Any] = []

    def handler(batch: Batch) -> None:
        seen.append(batch[0].data)
        queen.stop()

    queen.queue(queue).consume(handler)
    assert seen == [1]
    assert queen.queue(queue).pop(wait=SOON)[0].data == 2


def test_a_handler_that_would_not_run_is_refused(queen: Queen, queue: str, api: Api) -> None:
    """A coroutine that is never awaited must not count as done."""
    queen.queue(queue).create(retry_delay=0, retry_limit=0)
    queen.queue(queue).push(1)

    async def handler(batch: Batch) -> None: ...

    with pytest.raises(InvalidValue, match="AsyncQueen"):
        queen.queue(queue).consume(handler)
    queen.queue(queue).limit(1).consume(lambda batch: handler(batch))  # noqa: PLW0108 - a plain function
    assert "coroutine" in str(queen.queue(queue).dead_letters()[0].error_message)


def test_an_error_that_no_retry_mends_ends_consume(queen: Queen) -> None:
    with pytest.raises(Refused):
        queen.queue("q" * 300).concurrency(2).consume(print)


def test_a_handler_that_wants_the_end_of_the_program_gets_it_and_acks_nothing(
    queen: Queen, queue: str
) -> None:
    """Whichever of the workers it is; the others wait for at most a second."""
    queen.queue(queue).create(lease_time=2)
    queen.queue(queue).push(1)
    seen: list[Any] = []

    def handler(batch: Batch) -> None:
        seen.append(batch[0].data)
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        queen.queue(queue).concurrency(3).consume(handler)
    assert seen == [1]
    assert take(queen, queue).values("data") == [1]


def test_a_listener_that_fails_harms_nothing(
    queen: Queen, queue: str, caplog: pytest.LogCaptureFixture
) -> None:
    queen.queue(queue).push([1, 2])
    seen: list[Any] = []

    def listener(event: Event) -> None:
        raise RuntimeError("cannot count")

    queen.queue(queue).limit(2).consume(lambda batch: seen.append(batch[0].data), on_event=listener)
    assert seen == [1, 2]
    assert "cannot count" in caplog.text


def test_many_threads_share_a_client(queen: Queen, queue: str) -> None:
    def work(number: int) -> list[Any]:
        own = queen.queue(queue).partition(str(number)).batch(10)
        own.push(number)
        own.buffered().push(list(range(9)))
        queen.flush()
        found: list[Any] = []
        while len(found) < 10:  # a push of another thread in flight holds newer messages back
            batch = own.pop(wait=SOON)
            assert batch, found
            batch.ack()
            found += batch.values("data")
        return found

    with ThreadPoolExecutor(16) as threads:
        found = list(threads.map(work, range(100, 132)))
    assert found == [[number, *range(9)] for number in range(100, 132)]
