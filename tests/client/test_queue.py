"""A queue through the client: push, pop, consume, dead letters, seek."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from queenspark import (
    Batch,
    Event,
    InvalidValue,
    LeasedMessage,
    LeaseLost,
    NotFound,
    Outgoing,
    Queen,
    QueenError,
    QueueFull,
    Refused,
    TooLarge,
)
from tests.broker_process import Broker
from tests.client.conftest import stored
from tests.client.proxy import Proxy
from tests.wire.api import Api
from tests.wire.deadline import eventually

SOON = 10


def take(queen: Queen, queue: str, most: int = 100, group: str | None = None) -> Batch:
    chosen = queen.queue(queue).batch(most)
    return (chosen.group(group) if group else chosen).pop(wait=SOON)


# create


def test_options_are_stored_whatever_form_their_durations_have(queen: Queen, queue: str) -> None:
    options = queen.queue(queue).namespace("shop").task("mail").create(
        lease_time="1m30s", retry_limit=5, retry_delay=timedelta(milliseconds=250), ttl=3600, max_size=10,
        priority=7, delayed_processing="2s", window_buffer=1.0, retention="1d", completed_retention="12h",
        encryption=False, dead_letter_queue=f"{queue}-dead", max_wait_time=timedelta(minutes=5),
    )  # fmt: skip
    wanted = {
        "leaseTime": 90, "retryLimit": 5, "retryDelay": 250, "ttl": 3600, "maxSize": 10, "priority": 7,
        "delayedProcessing": 2, "windowBuffer": 1, "retentionSeconds": 86400,
        "completedRetentionSeconds": 43200, "encryptionEnabled": False, "deadLetterQueue": f"{queue}-dead",
        "maxWaitTimeSeconds": 300,
    }  # fmt: skip
    assert {name: options[name] for name in wanted} == wanted
    shown = queen.queue(queue).describe()
    assert (shown["namespace"], shown["task"]) == ("shop", "mail")
    assert {name: shown["options"][name] for name in wanted} == wanted


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("lease_time", "soon"),
        ("lease_time", 0.5),
        ("retry_delay", -1),
        ("ttl", "1500ms"),
        ("retention", True),
    ],
)
def test_an_option_that_makes_no_sense_is_named_and_nothing_is_sent(
    far: Queen, proxy: Proxy, queue: str, argument: str, value: Any
) -> None:
    with pytest.raises(InvalidValue, match=f"^{argument} is "):
        far.queue(queue).create(**{argument: value})
    assert proxy.requests == []


@pytest.mark.parametrize("setting", ["batch", "concurrency", "limit"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "3"])
def test_a_number_that_makes_no_sense_is_named(queen: Queen, setting: str, value: Any) -> None:
    with pytest.raises(InvalidValue, match=f"^{setting} is "):
        getattr(queen.queue("q"), setting)(value)


def test_what_the_broker_refuses_is_told_in_its_words(queen: Queen, queue: str) -> None:
    with pytest.raises(Refused, match="retryLimit") as refused:
        queen.queue(queue).create(retry_limit=-1)
    assert (refused.value.status, refused.value.code) == (400, "bad_request")


# push


def test_one_payload_and_a_list_of_them_are_pushed_in_order(queen: Queen, queue: str, api: Api) -> None:
    (one,) = queen.queue(queue).push({"n": 0})
    many = queen.queue(queue).push([{"n": 1}, None, 2, ""])
    assert not one.duplicate
    assert one.message_id != many[0].message_id
    assert stored(api, queue) == [{"n": 0}, {"n": 1}, None, 2, ""]
    assert queen.queue(queue).push([]) == []


def test_a_transaction_id_is_stored_once(queen: Queen, queue: str, api: Api) -> None:
    first, again = (queen.queue(queue).push({"n": n}, transaction_id="t-1")[0] for n in (1, 2))
    assert (first.duplicate, again.duplicate) == (False, True)
    assert first.message_id == again.message_id
    assert stored(api, queue) == [{"n": 1}]


def test_an_item_has_its_own_partition_transaction_id_and_trace_id(queen: Queen, queue: str) -> None:
    queen.queue(queue).partition("a").push([Outgoing(1), Outgoing(2, "b", "t-2", "trace-2")])
    found = {message.data: message for _ in range(2) for message in take(queen, queue)}
    assert (found[1].partition, found[2].partition) == ("a", "b")
    assert (found[2].transaction_id, found[2].trace_id) == ("t-2", "trace-2")


def test_a_transaction_id_for_several_messages_is_refused(far: Queen, proxy: Proxy, queue: str) -> None:
    with pytest.raises(InvalidValue, match="transaction_id is for one message and there are 2"):
        far.queue(queue).push([1, 2], transaction_id="t")
    with pytest.raises(InvalidValue, match="payload cannot be written as JSON"):
        far.queue(queue).push(object())
    assert proxy.requests == []


def test_what_is_too_large_is_refused(queen: Queen, queue: str, api: Api) -> None:
    with pytest.raises(TooLarge):
        queen.queue(queue).push("x" * 9_000_000)
    assert stored(api, queue) == []


def test_a_full_queue_says_so(shared_broker: Broker, queue: str) -> None:
    with Queen(shared_broker.url, retries=0) as queen:
        queen.queue(queue).create(max_size=1)
        queen.queue(queue).push(1)
        with pytest.raises(QueueFull, match="maxSize is 1"):
            eventually(lambda: queen.queue(queue).push(2) and None, within=5)


def test_names_may_have_any_characters(queen: Queen) -> None:
    name = "a/b c?d#e&ü%20"
    queen.queue(name).partition(name).push(1)
    batch = queen.queue(name).partition(name).group(name).pop(wait=SOON)
    assert (batch[0].queue, batch[0].partition, batch[0].group) == (name, name, name)
    batch.ack()
    assert queen.queue(name).delete()


# pop


def test_a_pop_takes_up_to_a_batch_of_one_partition(queen: Queen, queue: str) -> None:
    queen.queue(queue).partition("a").push([1, 2, 3])
    queen.queue(queue).partition("b").push([4])
    batch = take(queen, queue, 2)
    assert batch.map(lambda message: message.data) == [1, 2]
    assert batch[0].retries == 0
    assert batch[0].created_at.tzinfo is not None
    assert queen.queue(queue).partition("b").pop(wait=SOON)[0].data == 4


def test_a_pop_that_finds_nothing_is_an_empty_batch(queen: Queen, queue: str) -> None:
    batch = queen.queue(queue).pop()
    assert len(batch) == 0
    batch.ack()


def test_each_group_has_its_own_place(queen: Queen, queue: str) -> None:
    queen.queue(queue).push([1, 2])
    for group in ("a", "b"):
        batch = take(queen, queue, group=group)
        assert batch.values("data") == [1, 2]
        batch.ack()
        assert len(queen.queue(queue).group(group).pop()) == 0


def test_a_group_begins_where_it_is_told(queen: Queen, queue: str) -> None:
    queen.queue(queue).push(1)
    created = take(queen, queue, group="first")[0].created_at
    assert len(queen.queue(queue).group("new").start("latest").pop()) == 0
    queen.queue(queue).push(2)
    assert queen.queue(queue).group("new").pop(wait=SOON)[0].data == 2
    after = queen.queue(queue).group("timed").start(created + timedelta(milliseconds=1)).batch(9)
    assert after.pop(wait=SOON).values("data") == [2]
    with pytest.raises(InvalidValue, match="start is "):
        queen.queue(queue).start(datetime(2026, 1, 1)).pop()  # noqa: DTZ001 - that is the point
    with pytest.raises(InvalidValue, match="start is "):
        queen.queue(queue).start("yesterday").pop()


def test_an_acked_message_does_not_come_again_and_a_nacked_one_does(queen: Queen, queue: str) -> None:
    queen.queue(queue).create(retry_delay=0)
    queen.queue(queue).push([1, 2])
    first, second = take(queen, queue)
    first.ack()
    second.nack("not yet")
    (again,) = take(queen, queue)
    assert (again.data, again.retries) == (2, 1)
    again.ack()
    assert len(queen.queue(queue).pop()) == 0


def test_a_released_batch_comes_again_at_once_and_has_not_failed(queen: Queen, queue: str) -> None:
    queen.queue(queue).push([1, 2, 3])
    batch = take(queen, queue)
    batch[0].ack()
    batch.release()
    again = take(queen, queue)
    assert [(message.data, message.retries) for message in again] == [(2, 0), (3, 0)]


def test_an_answer_after_the_lease_is_refused(queen: Queen, queue: str) -> None:
    queen.queue(queue).create(lease_time=1)
    queen.queue(queue).push(1)
    (slow,) = take(queen, queue)
    (other,) = take(queen, queue)
    for answer in (slow.ack, slow.nack, slow.renew):
        with pytest.raises(LeaseLost):
            answer()
    other.ack()


def test_a_renewed_lease_lasts(queen: Queen, queue: str) -> None:
    queen.queue(queue).create(lease_time=1)
    queen.queue(queue).push(1)
    batch = take(queen, queue)
    batch.renew("30s")
    assert len(queen.queue(queue).pop(wait=1.5)) == 0
    batch.ack()


def test_with_auto_ack_nothing_is_left_to_answer(queen: Queen, queue: str) -> None:
    queen.queue(queue).push([1, 2])
    batch = queen.queue(queue).batch(9).pop(wait=SOON, auto_ack=True)
    assert batch.values("data") == [1, 2]
    assert batch.unanswered == []
    batch.ack()
    assert queen.queue(queue).describe()["messages"]["processing"] == 0


# consume


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


def test_a_batch_that_fails_comes_again_with_its_reason_kept(queen: Queen, queue: str) -> None:
    queen.queue(queue).create(retry_delay=0, retry_limit=1)
    queen.queue(queue).push([1, 2])
    events: list[Event] = []

    def handler(batch: Batch) -> None:
        for message in batch.filter(lambda message: message.data == 1):
            message.ack()
        raise KeyError("missing")

    queen.queue(queue).batch(9).idle(0.5).consume(handler, on_event=events.append)
    assert [event.kind for event in events] == ["delivered", "failed"] * 2
    assert isinstance(events[1].error, KeyError)
    (dead,) = queen.queue(queue).dead_letters()
    assert (dead.data, dead.error_message) == (2, "KeyError: 'missing'")
    assert dead.failed_at.tzinfo is not None


def test_a_reason_that_is_no_unicode_is_kept_as_far_as_it_goes(queen: Queen, queue: str) -> None:
    """As in the name of a file."""
    queen.queue(queue).create(retry_limit=0)
    queen.queue(queue).push([1, 2])

    def handler(batch: Batch) -> None:
        raise FileNotFoundError("a\udcff.txt")

    queen.queue(queue).limit(1).consume(handler, on_event=lambda event: None)
    assert queen.queue(queue).dead_letters()[0].error_message == "FileNotFoundError: a\\udcff.txt"
    with pytest.raises(InvalidValue, match="cannot be written"):
        queen.queue(queue).pop(wait=SOON).nack("a\udcff.txt")
    with pytest.raises(InvalidValue, match="cannot be written"):
        queen.queue("a\udcff").pop()


def test_without_auto_ack_the_handler_answers(queen: Queen, queue: str) -> None:
    queen.queue(queue).create(lease_time=1)
    queen.queue(queue).push([1, 2, 3])

    def handler(message: LeasedMessage) -> None:
        if message.data != 2:
            message.ack()

    queen.queue(queue).batch(9).each().auto_ack(False).limit(3).consume(handler)
    assert take(queen, queue).values("data") == [2]


def test_one_worker_works_in_the_thread_of_the_caller(queen: Queen, queue: str) -> None:
    """So that a handler may use what belongs to its thread."""
    queen.queue(queue).push([1, 2])
    seen: list[int] = []
    one = queen.queue(queue).limit(1)
    one.consume(lambda batch: seen.append(threading.get_ident()))
    one.concurrency(2).consume(lambda batch: seen.append(threading.get_ident()))
    assert seen[0] == threading.get_ident()
    assert seen[1] != threading.get_ident()


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


def test_idle_zero_takes_what_is_there(queen: Queen, queue: str) -> None:
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
    """A coroutine that nobody awaits must not count as done."""
    queen.queue(queue).create(retry_delay=0, retry_limit=0)
    queen.queue(queue).push(1)

    async def handler(batch: Batch) -> None: ...

    with pytest.raises(InvalidValue, match="AsyncQueen"):
        queen.queue(queue).consume(handler)
    queen.queue(queue).limit(1).consume(lambda batch: handler(batch))  # noqa: PLW0108 - so that it looks plain
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
        batch = own.pop(wait=SOON)
        batch.ack()
        return batch.values("data")

    with ThreadPoolExecutor(16) as threads:
        found = list(threads.map(work, range(100, 132)))
    assert found == [[number, *range(9)] for number in range(100, 132)]


# closing


def test_close_waits_for_what_other_threads_have_in_hand(shared_broker: Broker, queue: str) -> None:
    working, go_on = threading.Event(), threading.Event()

    def handler(batch: Batch) -> None:
        working.set()
        go_on.wait(SOON)

    queen = Queen(shared_broker.url)
    queen.queue(queue).push([1, 2])
    consumer = threading.Thread(target=queen.queue(queue).consume, args=[handler])
    consumer.start()
    working.wait(SOON)
    closer = threading.Thread(target=queen.close)
    closer.start()
    closer.join(0.3)
    assert closer.is_alive()
    go_on.set()
    for thread in (closer, consumer):
        thread.join(SOON)
        assert not thread.is_alive()
    with Queen(shared_broker.url) as other:
        assert take(other, queue).values("data") == [2]


def test_a_handler_cannot_close_its_client(queen: Queen, queue: str) -> None:
    """It would wait for itself."""
    queen.queue(queue).create(retry_limit=0)
    queen.queue(queue).push(1)
    queen.queue(queue).limit(1).consume(lambda batch: queen.close())
    assert "call stop()" in str(queen.queue(queue).dead_letters()[0].error_message)


def test_a_handler_may_use_another_client_and_close_it(
    queen: Queen, shared_broker: Broker, queue: str, api: Api
) -> None:
    queen.queue(queue).push(1)

    def handler(batch: Batch) -> None:
        with Queen(shared_broker.url) as other:
            other.queue(f"{queue}-out").buffered().push(batch[0].data)

    queen.queue(queue).limit(1).consume(handler)
    assert stored(api, f"{queue}-out") == [1]


def test_a_closed_client_says_so(shared_broker: Broker, queue: str) -> None:
    queen = Queen(shared_broker.url)
    queen.close()
    queen.close()
    for use in (queen.queue(queue).pop, lambda: queen.queue(queue).consume(print), queen.admin.status):
        with pytest.raises(QueenError, match="closed"):
            use()
    with pytest.raises(QueenError, match="closed"):
        queen.queue(queue).buffered().push(1)


# looking after it


def test_dead_letters_are_listed_put_back_and_deleted(queen: Queen, queue: str) -> None:
    mail = queen.queue(queue).group("mail")
    mail.create(retry_limit=0)
    for key in ("a", "b"):
        queen.queue(queue).partition(key).push(key)
    for _ in range(2):
        mail.pop(wait=SOON).nack("no such address")
    assert sorted(dead.data for dead in mail.dead_letters()) == ["a", "b"]
    assert [dead.error_message for dead in mail.dead_letters(limit=1)] == ["no such address"]
    assert [dead.data for dead in mail.partition("a").dead_letters()] == ["a"]
    assert queen.queue(queue).group("other").dead_letters() == []
    assert mail.partition("a").retry_dead_letters() == 1
    assert mail.pop(wait=SOON)[0].data == "a"
    assert mail.partition("b").delete_dead_letters() == 1
    assert mail.dead_letters() == []


def test_seek_moves_a_group(queen: Queen, queue: str) -> None:
    queen.queue(queue).push([1, 2])
    group = queen.queue(queue).group("g").batch(9)
    first, second = group.pop(wait=SOON)
    group.seek("beginning")
    with pytest.raises(LeaseLost):
        first.ack()
    group.pop(wait=SOON).ack()
    group.seek(second.created_at)
    assert 2 in group.pop(wait=SOON).values("data")
    group.seek("end")
    assert len(group.pop()) == 0
    group.partition("Default").seek("beginning")
    assert group.pop(wait=SOON).values("data") == [1, 2]
    with pytest.raises(InvalidValue, match="needs a group"):
        queen.queue(queue).seek("end")
    with pytest.raises(InvalidValue, match="to is 'soon'"):
        group.seek("soon")
    with pytest.raises(NotFound):
        queen.queue(f"{queue}-none").group("g").seek(datetime.now(UTC))


def test_a_deleted_queue_is_gone(queen: Queen, queue: str) -> None:
    queen.queue(queue).push(1)
    assert queen.queue(queue).describe()["messages"]["total"] == 1
    assert queen.queue(queue).delete()
    assert not queen.queue(queue).delete()
    with pytest.raises(NotFound):
        queen.queue(queue).describe()


def test_admin_shows_the_whole_system(queen: Queen, queue: str) -> None:
    queen.queue(queue).namespace(f"n-{queue}").create()
    queen.queue(queue).push(1)
    queen.queue(queue).group(f"g-{queue}").pop(wait=SOON)
    assert "queues" in queen.admin.status()
    assert [shown["name"] for shown in queen.admin.queues(namespace=f"n-{queue}")] == [queue]
    assert [group["queue"] for group in queen.admin.groups() if group["name"] == f"g-{queue}"] == [queue]
    assert queen.admin.delete_group(f"g-{queue}", queue=queue) == 1
    assert queen.admin.delete_group(f"g-{queue}") == 0
    assert isinstance(queen.admin.streams(namespace="none"), list)
    assert "byStream" in queen.admin.stream_stats()
