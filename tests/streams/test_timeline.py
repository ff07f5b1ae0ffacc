"""The timeline: windows by key and time, each with its state in each group."""

import json
import time
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest

from tests.streams.sealing import MINUTE, minute
from tests.streams.stream_api import StreamApi, short
from tests.wire.api import Json, responded

EPOCH = {"from": "1970-01-01T00:00:00Z"}


_fresh = count(200)
"""Different queries: the same one gets a cached response for a second."""


def shown(stream: StreamApi, **query: Any) -> Json:
    until = {"to": "1971-01-01T00:00:00Z", "windows": next(_fresh)}
    return stream.resource("timeline", **{**EPOCH, **until, **query})


def states(stream: StreamApi, group: str = "g", **query: Any) -> dict[str, str]:
    """The state of each window, by key and minute."""
    return {
        f"{window['key']}{_minute(window['start'])}": next(
            (each["state"] for each in window["groups"] if each["consumerGroup"] == group), "none"
        )
        for window in shown(stream, **query)["windows"]
    }


def _minute(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp()) // 60


def iso(microseconds: int) -> str:
    return datetime.fromtimestamp(microseconds / 1e6, UTC).isoformat()


def test_a_window_goes_through_its_states(stream: StreamApi) -> None:
    stream.define(partitioned=True)
    stream.seal(minute("a", 1), minute("a", 2))
    assert states(stream) == {"a1": "none", "a2": "none"}
    window = stream.poll(consumerId="worker")
    assert states(stream) == {"a1": "leased", "a2": "waiting"}
    (leased, waiting) = shown(stream)["windows"]
    assert leased["groups"][0]["leaseHolder"] == "worker"
    assert leased["groups"][0]["leaseExpiresAt"] > leased["groups"][0]["leasedAt"]
    stream.ack(window, False, error="not yet")
    assert states(stream)["a1"] == "retrying"
    (again, _) = shown(stream)["windows"]
    assert (again["groups"][0]["attempts"], again["groups"][0]["error"]) == (1, "not yet")
    assert again["groups"][0]["availableAt"]
    stream.end_waits()
    stream.ack(stream.poll())
    assert states(stream) == {"a1": "acked", "a2": "waiting"}
    assert waiting["groups"][0]["state"] == "waiting"


def test_dead_windows_and_those_that_were_put_back(stream: StreamApi) -> None:
    stream.define(partitioned=True)
    stream.seal(minute("a", 1))
    window = stream.poll()
    stream.api.ack(window, "dlq", consumerGroup="g", error="broken")
    ((dead,),) = [window["groups"] for window in shown(stream)["windows"]]
    assert (dead["state"], dead["error"], dead["failedAt"] is not None) == ("dead", "broken", True)
    responded(stream.api.post(f"/api/v1/dlq/retry?consumerGroup=g&partitionId={window['partitionId']}"), 200)
    assert states(stream) == {"a1": "retrying"}
    stream.ack(stream.poll())
    assert states(stream) == {"a1": "acked"}


def test_groups_have_states_of_their_own(stream: StreamApi) -> None:
    stream.define(partitioned=True)
    stream.seal(minute("a", 1))
    stream.ack(stream.poll("first"))
    stream.poll("second")
    assert (states(stream, "first"), states(stream, "second")) == ({"a1": "acked"}, {"a1": "leased"})
    ((only,),) = [window["groups"] for window in shown(stream, consumerGroup="second")["windows"]]
    assert only["consumerGroup"] == "second"


def test_a_group_that_went_to_the_end_has_skipped_windows(stream: StreamApi) -> None:
    stream.define(partitioned=True)
    stream.seal(minute("a", 1), minute("a", 2))
    stream.ack(stream.poll())
    stream.api.seek("g", f"windows:{stream.namespace}/{stream.name}", toEnd=True)
    assert states(stream) == {"a1": "skipped", "a2": "skipped"}
    stream.seal(minute("a", 3))
    assert states(stream)["a3"] == "waiting"


def test_a_group_that_went_to_a_window_has_skipped_those_before_it(stream: StreamApi) -> None:
    stream.define(partitioned=True)
    stream.seal(minute("a", 1), minute("a", 2), minute("a", 3), minute("b", 1))
    stream.seek(3 * 60, "new")
    before = {"a1": "skipped", "a2": "skipped", "b1": "skipped"}
    assert states(stream, "new") == {**before, "a3": "waiting"}
    stream.seal(minute("c", 2), minute("c", 4), minute("a", 2, revision=2))
    assert states(stream, "new") == {**before, "a3": "waiting", "c2": "skipped", "c4": "waiting"}
    assert sorted(stream.drain("new")) == ["a3", "c4"]
    assert states(stream, "new") == {**before, "a3": "acked", "c2": "skipped", "c4": "acked"}
    stream.seek(2 * 60, "new")
    assert states(stream, "new")["a2"] == "waiting"


def test_windows_are_chosen_by_time_key_and_state(stream: StreamApi) -> None:
    stream.define(partitioned=True)
    stream.seal(*(minute(key, number) for key in "abc" for number in range(1, 6)))
    stream.seal(minute("a", 2, revision=2))
    assert sorted(states(stream, **{"from": iso(2 * MINUTE), "to": iso(4 * MINUTE)})) == [
        f"{key}{number}" for key in "abc" for number in (2, 3)
    ]
    assert {name[0] for name in states(stream, key="b")} == {"b"}
    assert {name[0] for name in states(stream, search="C")} == {"c"}
    assert [window["revision"] for window in shown(stream, state="late")["windows"]] == [2]
    stream.poll()
    assert list(states(stream, state="leased")) == ["a1"]
    assert states(stream, key="nowhere") == {}
    response = stream.api.get(f"/api/v1/resources/streams/{stream.name}/timeline", state="odd")
    assert (response.status_code, "state must be open" in response.text) == (400, True)
    wrong = {"from": iso(MINUTE), "to": iso(0)}
    assert stream.api.get(f"/api/v1/resources/streams/{stream.name}/timeline", **wrong).status_code == 400


def test_keys_are_paged_the_busiest_first(stream: StreamApi) -> None:
    stream.define(partitioned=True)
    stream.seal(
        *(minute(key, number) for key, most in (("x", 2), ("y", 5), ("z", 3)) for number in range(most))
    )
    assert stream.resource("keys")["keys"] == [
        {"key": "y", "windows": 5}, {"key": "z", "windows": 3}, {"key": "x", "windows": 2},
    ]  # fmt: skip
    page = shown(stream, limit=1, offset=1, windows=2)
    assert (page["keys"], page["totalKeys"], page["hasMore"]) == (["z"], 3, ["z"])
    assert [_minute(window["start"]) for window in page["windows"]] == [1, 2], "the newest two"
    found = stream.resource("keys", search="X")
    assert ([each["key"] for each in found["keys"]], found["total"]) == (["x"], 1)


def test_windows_in_any_order_are_those_of_their_key(stream: StreamApi) -> None:
    stream.define(partitioned=True, ordered=False)
    stream.seal(*(minute("ann", number, ordered=False) for number in range(40)))
    stream.seal(*(minute("bob", number, ordered=False) for number in range(3)))
    assert stream.resource("keys")["keys"] == [{"key": "ann", "windows": 40}, {"key": "bob", "windows": 3}]
    found = stream.resource("keys", search="NN")
    assert ([each["key"] for each in found["keys"]], found["total"]) == (["ann"], 1)
    everything = shown(stream)
    assert (everything["keys"], everything["totalKeys"], everything["hasMore"]) == (["ann", "bob"], 2, [])
    assert len(everything["windows"]) == 43
    page = shown(stream, key="ann", windows=10)
    assert [_minute(window["start"]) for window in page["windows"]] == [*range(30, 40)], "the newest ten"
    assert (page["keys"], page["hasMore"]) == (["ann"], ["ann"])
    held = responded(stream.try_poll(maxWindows=2), 200)["windows"]
    assert sorted(states(stream, state="leased")) == sorted(short(window) for window in held)


def test_windows_of_ordered_and_unordered_versions_share_their_key(stream: StreamApi) -> None:
    stream.define(partitioned=True)
    stream.seal(minute("ann", 1), minute("ann#7", 1))
    stream.define(partitioned=True, ordered=False)
    stream.seal(minute("ann", 2, version=2, ordered=False), minute("ann", 3, version=2, ordered=False))
    assert sorted(states(stream, key="ann")) == ["ann1", "ann2", "ann3"]
    assert sorted(states(stream, key="ann#7")) == ["ann#71"]
    everything = shown(stream)
    assert {window["key"] for window in everything["windows"]} <= set(everything["keys"])
    stream.define(partitioned=True, ordered=True)
    assert sorted(states(stream, key="ann")) == ["ann1", "ann2", "ann3"]


@pytest.mark.parametrize("kind", ["tumbling", "sliding", "session"])
def test_open_windows_are_those_that_the_log_has_records_for(stream: StreamApi, kind: str) -> None:
    sizes: dict[str, Json] = {
        "tumbling": {"window_duration_ms": 60_000},
        "sliding": {"window_duration_ms": 60_000, "window_slide_ms": 30_000},
        "session": {"window_gap_ms": 60_000},
    }
    stream.define(
        partitioned=True, window_type=kind, event_time="at", window_grace_period_ms=0, **sizes[kind]
    )
    begin = int(time.time()) // 60 * 60
    records = stream.push({"at": (begin + 40) * 1000}, {"at": (begin + 45) * 1000}, partition="k")
    first, last = records[0].position, records[-1].position
    opened = {"open_windows": 1, "open_txid": first[0], "open_id": first[1]}
    state = json.dumps({"txid": last[0], "id": last[1], "tick": records[-1].created_us, "seq": 1_000_000})
    stream.run("DELETE FROM queenspark.progress")  # of the streams of other tests
    stream.seal(stats=[{"stream": stream.id, "version": 1, **opened}], state=state)
    response = stream.resource("timeline")
    assert (response["keys"], response["openWindows"], response["openComplete"]) == (["k"], 1, True)
    expected = {
        "tumbling": [(0, 60, 2)], "sliding": [(0, 60, 2), (30, 90, 2)], "session": [(40, 105, 2)],
    }  # fmt: skip
    found = [
        (
            round(datetime.fromisoformat(window["start"]).timestamp()) - begin,
            round(datetime.fromisoformat(window["end"]).timestamp()) - begin,
            window["count"],
        )
        for window in response["open"]
    ]
    assert found == expected[kind]
    assert stream.resource("timeline", state="acked")["open"] == []
    few = stream.resource("timeline", windows=1)
    assert (len(few["open"]), few["openComplete"]) == (1, len(expected[kind]) == 1)


def test_a_window_is_shown_with_pages_of_its_messages(stream: StreamApi) -> None:
    stream.define(partitioned=True)
    records = stream.push(*range(5))
    stream.seal(stream.over(records))
    (window,) = stream.resource("timeline")["windows"]
    found: list[Any] = []
    cursor: str | None = None
    while True:
        more: Json = {} if cursor is None else {"cursor": cursor}
        page = stream.resource("windows", window["partitionId"], window["transactionId"], limit=2, **more)
        found += [message["data"] for message in page["messages"]]
        cursor = page["nextCursor"]
        if cursor is None:
            break
    assert found == [0, 1, 2, 3, 4]
    for path in (f"{window['partitionId']}/none", "x/y", f"{2**70}/y"):
        missing = stream.api.get(f"/api/v1/resources/streams/{stream.name}/windows/{path}")
        assert missing.status_code == 404


def test_versions_are_listed_the_newest_first(stream: StreamApi) -> None:
    stream.define(partitioned=True, window_duration_ms=60_000)
    stream.define(partitioned=True, window_duration_ms=30_000)
    found = stream.resource("versions")["versions"]
    assert [(each["version"], each["windowDurationMs"]) for each in found] == [(2, 30_000), (1, 60_000)]
