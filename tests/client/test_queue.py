"""A queue through the client: create, push, pop, dead letters, seek."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from queenspark import (
    InvalidValue,
    LeaseLost,
    NotFound,
    Outgoing,
    Queen,
    QueueFull,
    Refused,
    TooLarge,
)
from tests.broker_process import Broker
from tests.client.conftest import SOON, stored, take
from tests.client.proxy import Proxy
from tests.wire.api import Api
from tests.wire.deadline import eventually


def test_options_accept_every_form_of_duration(queen: Queen, queue: str) -> None:
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


def test_a_rejection_has_the_brokers_message(queen: Queen, queue: str) -> None:
    with pytest.raises(Refused, match="retryLimit") as refused:
        queen.queue(queue).create(retry_limit=-1)
    assert (refused.value.status, refused.value.code) == (400, "bad_request")


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
    with pytest.raises(InvalidValue, match="transaction_id requires a single message, not 2"):
        far.queue(queue).push([1, 2], transaction_id="t")
    with pytest.raises(InvalidValue, match="payload cannot be serialized as JSON"):
        far.queue(queue).push(object())
    assert proxy.requests == []


def test_a_payload_that_is_too_large_is_refused(queen: Queen, queue: str, api: Api) -> None:
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


def test_each_group_has_its_own_cursor(queen: Queen, queue: str) -> None:
    queen.queue(queue).push([1, 2])
    for group in ("a", "b"):
        batch = take(queen, queue, group=group)
        assert batch.values("data") == [1, 2]
        batch.ack()
        assert len(queen.queue(queue).group(group).pop()) == 0


def test_a_group_begins_at_the_requested_position(queen: Queen, queue: str) -> None:
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


def test_a_released_batch_is_redelivered_at_once_and_has_not_failed(queen: Queen, queue: str) -> None:
    queen.queue(queue).push([1, 2, 3])
    batch = take(queen, queue)
    batch[0].ack()
    batch.release()
    again = take(queen, queue)
    assert [(message.data, message.retries) for message in again] == [(2, 0), (3, 0)]


def test_an_ack_after_the_lease_is_rejected(queen: Queen, queue: str) -> None:
    queen.queue(queue).create(lease_time=1)
    queen.queue(queue).push(1)
    (slow,) = take(queen, queue)
    queen.queue(queue).create(lease_time=30)
    (other,) = take(queen, queue)
    for act in (slow.ack, slow.nack, slow.renew):
        with pytest.raises(LeaseLost):
            act()
    other.ack()


def test_a_renewed_lease_lasts(queen: Queen, queue: str) -> None:
    queen.queue(queue).create(lease_time=2)
    queen.queue(queue).push(1)
    batch = take(queen, queue)
    batch.renew("30s")
    assert len(queen.queue(queue).pop(wait=2.2)) == 0
    batch.ack()


def test_with_auto_ack_nothing_is_left_to_ack(queen: Queen, queue: str) -> None:
    queen.queue(queue).push([1, 2])
    batch = queen.queue(queue).batch(9).pop(wait=SOON, auto_ack=True)
    assert batch.values("data") == [1, 2]
    assert batch.unacked == []
    batch.ack()
    assert queen.queue(queue).describe()["messages"]["processing"] == 0


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
    with pytest.raises(InvalidValue, match="requires a group"):
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
    with pytest.raises(NotFound) as refused:
        queen.queue(queue).describe()
    assert refused.value.response["code"] == refused.value.code


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


def test_messages_are_pushed_with_headers_and_have_them(queen: Queen, queue: str) -> None:
    payloads = [1, Outgoing(2, headers={"tenant": "south", "n": "2"})]
    queen.queue(queue).push(payloads, headers={"tenant": "north"})
    batch = take(queen, queue)
    assert [message.headers for message in batch] == [{"tenant": "north"}, {"tenant": "south", "n": "2"}]
    batch.ack()
    queen.queue(queue).push("without")
    assert [message.headers for message in take(queen, queue)] == [{}]


def test_buffered_messages_have_their_headers(queen: Queen, queue: str) -> None:
    queen.queue(queue).buffered().push(1, headers={"tenant": "north"})
    queen.flush()
    assert [message.headers for message in take(queen, queue)] == [{"tenant": "north"}]


def test_dead_letters_have_their_headers(queen: Queen, queue: str) -> None:
    own = queen.queue(queue)
    own.create(retry_limit=0)
    own.push(1, headers={"tenant": "north"})
    own.pop(wait=SOON).nack("broken")
    (letter,) = own.dead_letters()
    assert letter.headers == {"tenant": "north"}


def test_headers_that_are_no_strings_are_named_and_nothing_is_sent(
    far: Queen, proxy: Proxy, queue: str
) -> None:
    wrong: Any = {"n": 1}
    with pytest.raises(InvalidValue, match=r"^header 'n' is 1: header values must be strings"):
        far.queue(queue).push("x", headers=wrong)
    assert proxy.requests == []


def test_a_reserved_header_is_refused_in_the_words_of_the_broker(queen: Queen, queue: str) -> None:
    with pytest.raises(Refused, match=r"_version.*reserved"):
        queen.queue(queue).push(1, headers={"_version": "1"})
