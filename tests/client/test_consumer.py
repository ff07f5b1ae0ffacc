"""A consumer of windows: polls, handles and acks them."""

import threading
import time
from typing import Any

import pytest

from queenspark import Consumer, Event, InvalidValue, LeaseLost, Queen, Window
from tests.client.conftest import SOON, lease, sealed
from tests.streams.sealing import minute
from tests.streams.stream_api import StreamApi
from tests.wire.deadline import eventually


def polled(consumer: Consumer, **more: Any) -> Window:
    window = consumer.poll(wait=SOON, **more)
    assert window is not None
    return window


def test_a_window_has_all_fields_of_the_response(consumer: Consumer, stream: StreamApi) -> None:
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


def wait_until_no_pipeline_leads(stream: StreamApi) -> None:
    """An earlier test may have led, and the broker reads the leader only every few seconds."""
    eventually(lambda: stream.try_poll("another").headers.get("Queenspark-Pipeline") == "none")


def test_a_poll_without_a_window_returns_none_in_time(consumer: Consumer, stream: StreamApi) -> None:
    began = time.monotonic()
    assert consumer.poll(wait=0) is None
    assert consumer.poll(wait="300ms") is None
    assert time.monotonic() - began < 5


def test_an_acked_window_does_not_come_again(consumer: Consumer, stream: StreamApi) -> None:
    sealed(stream, 1)
    window = polled(consumer)
    window.ack()
    window.ack()
    assert window.acked
    assert stream.empty()
    assert not stream.empty("another group")


def test_a_nacked_window_is_redelivered_and_then_is_a_dead_letter(
    consumer: Consumer, stream: StreamApi
) -> None:
    sealed(stream, 1)
    for retries in range(4):
        window = polled(consumer)
        assert window.retries == retries
        window.nack("not today")
        stream.end_waits()
    assert stream.empty()
    dead = stream.api.read("/api/v1/dlq", queue=stream.resource()["windowQueue"])["messages"]
    assert [letter["errorMessage"] for letter in dead] == ["not today"]


def test_a_released_window_is_redelivered_at_once_and_has_not_failed(
    consumer: Consumer, stream: StreamApi
) -> None:
    id_ = sealed(stream, 1)
    polled(consumer).release()
    again = polled(consumer)
    assert (again.id, again.retries) == (id_, 0)
    stream.expire_leases()
    polled(consumer).ack()
    with pytest.raises(LeaseLost, match=r"^1 of 1 acks were rejected; first: "):
        again.release()


def test_a_lost_lease_cannot_be_acked_or_renewed(consumer: Consumer, stream: StreamApi) -> None:
    sealed(stream, 1)
    slow = polled(consumer)
    stream.expire_leases()
    other = polled(consumer)
    for act in (slow.ack, slow.nack, slow.renew):
        with pytest.raises(LeaseLost):
            act()
    with pytest.raises(LeaseLost, match=f"^the ack of window {slow.id} was rejected"):
        slow.ack()
    other.renew(90)
    other.ack()


def test_a_large_window_comes_in_pages(consumer: Consumer, stream: StreamApi) -> None:
    sealed(stream, *range(7))
    window = polled(consumer, max_messages=3)
    assert [page.values("data") for page in window.pages()] == [[0, 1, 2], [3, 4, 5], [6]]
    with pytest.raises(InvalidValue, match="pages"):
        window.aggregate(count=True)
    window.ack()


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


def test_events_are_reported_in_order(queen: Queen, stream: StreamApi) -> None:
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


def test_without_auto_ack_the_handler_acks(consumer: Consumer, stream: StreamApi) -> None:
    sealed(stream, 1, key="a")
    sealed(stream, 2, key="b")

    def handler(window: Window) -> None:
        if window.key == "a":
            window.ack()

    consumer.process(handler, limit=2, auto_ack=False)
    stream.expire_leases()
    assert polled(consumer).key == "b"


@pytest.mark.parametrize("argument", ["concurrency", "limit"])
def test_invalid_numbers_are_named_in_the_error(consumer: Consumer, argument: str) -> None:
    wrong: dict[str, Any] = {argument: 0}
    with pytest.raises(InvalidValue, match=f"^{argument} is 0"):
        consumer.process(print, **wrong)


def test_a_window_can_come_without_its_messages(consumer: Consumer, stream: StreamApi) -> None:
    sealed(stream, *range(3))
    window = polled(consumer, messages=False)
    assert (len(window), list(window.messages)) == (3, [])
    with pytest.raises(InvalidValue, match="messages=False: iterate over pages"):
        window.aggregate(count=True)
    assert [page.values("data") for page in window.pages()] == [[0, 1, 2]]
    window.ack()


def test_a_page_size_without_messages_is_refused(consumer: Consumer) -> None:
    with pytest.raises(InvalidValue, match="max_messages is 5 and messages is False"):
        consumer.poll(wait=0, max_messages=5, messages=False)


def test_process_without_messages(consumer: Consumer, stream: StreamApi) -> None:
    sealed(stream, 1, 2)
    seen: list[tuple[int, int]] = []
    consumer.process(
        lambda window: seen.append((window.count, len(window.messages))), limit=1, messages=False
    )
    assert seen == [(2, 0)]


def test_the_messages_of_a_window_have_their_headers(consumer: Consumer, stream: StreamApi) -> None:
    records = [*stream.push(1, headers={"tenant": "north"}), *stream.push(2)]
    stream.seal(stream.over(records))
    window = polled(consumer)
    assert [message.headers for message in window.messages] == [{"tenant": "north"}, {}]
    assert window.values("headers.tenant") == ["north"]


def test_a_window_has_the_aggregates_of_its_stream(queen: Queen, stream: StreamApi) -> None:
    stream.seal(minute("p", 1, values='{"total": 5, "mean": null}'), minute("q", 1))
    consumer = queen.consumer(stream.name, "g")
    found = {window.key: window.aggregates for _ in range(2) if (window := consumer.poll(messages=False))}
    assert found == {"p": {"total": 5, "mean": None}, "q": {}}


def test_a_consumer_can_seek(consumer: Consumer, stream: StreamApi) -> None:
    stream.seal(minute("p", 1), minute("p", 2))
    consumer.process(print, limit=2)
    consumer.seek("1970-01-01T00:02:00Z")
    assert polled(consumer).start.minute == 2
    with pytest.raises(InvalidValue, match=r"^time is 'soon'"):
        consumer.seek("soon")


def test_ack_false_is_a_nack(consumer: Consumer, stream: StreamApi) -> None:
    """As in Queen's guide: `window.ack(false)`."""
    sealed(stream, 1)
    polled(consumer).ack(False)
    assert len(stream.end_waits()) == 1
    again = polled(consumer)
    assert again.retries == 1
    again.ack(True)
    assert stream.empty()


def test_a_window_that_failed_by_hand_is_not_acked_by_process(consumer: Consumer, stream: StreamApi) -> None:
    sealed(stream, 1)
    consumer.process(lambda window: window.ack(False), limit=1)
    assert len(stream.end_waits()) == 1
    assert polled(consumer).retries == 1


def test_a_consumer_that_waits_without_a_pipeline_says_so(
    consumer: Consumer, stream: StreamApi, caplog: pytest.LogCaptureFixture
) -> None:
    """Instead of ending silently: this broker has none."""
    wait_until_no_pipeline_leads(stream)
    consumer.process(print, idle=0)
    consumer.process(print, idle=0)
    (said,) = [record.getMessage() for record in caplog.records if record.name == "queenspark.client"]
    assert said == (
        f"{stream.name}: waiting for windows, but no pipeline is leading: start one with"
        " `queenspark pipeline`"
    )


def test_a_poll_without_a_pipeline_says_so_too(
    consumer: Consumer, stream: StreamApi, caplog: pytest.LogCaptureFixture
) -> None:
    """Once for a loop of polls, and not while windows arrive."""
    wait_until_no_pipeline_leads(stream)
    sealed(stream, 1)
    polled(consumer).ack()
    assert caplog.records == []
    for _ in range(3):
        assert consumer.poll(wait=0) is None
    (said,) = [record.getMessage() for record in caplog.records if record.name == "queenspark.client"]
    assert said.startswith(f"{stream.name}: waiting for windows, but no pipeline is leading")


@pytest.mark.parametrize("far_too_long", [90_000, "90000s", "25h"])
def test_a_lease_of_more_than_a_day_is_refused(
    consumer: Consumer, stream: StreamApi, far_too_long: int | str
) -> None:
    """`window.renew(120000)` is two minutes in Queen's guide and more than a day here."""
    sealed(stream, 1)
    window = polled(consumer)
    with pytest.raises(InvalidValue, match=r"^duration is .*at most a day.*seconds, not milliseconds"):
        window.renew(far_too_long)
    window.renew(86_400)
