"""Results of windows are pushed with the ack, exactly once."""

from typing import Any

import pytest

from queenspark import Consumer, Event, Outgoing, Queen, Window
from tests.client.conftest import sealed, stored
from tests.client.proxy import CUT_AFTER, CUT_BEFORE, Fault, Proxy
from tests.streams.stream_api import StreamApi
from tests.wire.api import Api


@pytest.mark.parametrize(
    "faults",
    [[], [CUT_AFTER], [Fault(truncate=5)], [CUT_BEFORE, Fault(status=503)], [CUT_AFTER, *[CUT_BEFORE] * 7]],
    ids=["no fault", "lost response", "truncated response", "lost request", "beyond the retries"],
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
    returned: dict[str, Any] = {"a": [1, Outgoing(2, partition="other")], "b": None, "c": [], "d": 0}
    for key in returned:
        sealed(stream, 1, key=key)
    consumer.process(lambda window: returned[window.key], into=queue, limit=4)
    assert sorted(stored(api, queue)) == [0, 1, 2]
    assert stream.empty()


@pytest.mark.parametrize("result", [object(), "x" * 9_000_000], ids=["no JSON", "too large"])
def test_a_result_that_cannot_be_stored_is_a_failure(
    queen: Queen, stream: StreamApi, queue: str, result: Any
) -> None:
    """It counts as a failed attempt, so the window is not redelivered forever."""
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
