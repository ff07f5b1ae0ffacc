"""Redefined streams: 7 and 22 of the known holes, resets, and where a stream starts."""

import time
from collections import Counter
from collections.abc import Iterable

import pytest

from tests.streams.stream_api import data_of
from tests.system.checks import all_data, iso, matches, message_count, progress, settled, wait_until
from tests.system.system import Stream, System, as_rows, oracle_rows
from tests.wire.api import Json, responded
from tests.wire.deadline import eventually

pytestmark = pytest.mark.together


def versions(windows: Iterable[Json], version: int) -> list[Json]:
    return [window for window in windows if window["version"] == version]


def bounds(system: System, stream: Stream, version: int) -> tuple[int | None, int | None]:
    """From when and until when windows of a version come out."""
    ((body,),) = system.run(
        "SELECT body FROM queenspark.definitions WHERE stream_id = %s AND version = %s"
        " ORDER BY seq DESC LIMIT 1",
        stream.id, version,
    )  # fmt: skip
    return body["from_us"], body["until_us"]


def records_read(system: System, stream: Stream, version: int) -> int:
    ((count,),) = system.run(
        "SELECT sum(records)::integer FROM queenspark.stream_stats WHERE stream_id = %s AND version = %s",
        stream.id, version,
    )  # fmt: skip
    return int(count)


def redefined(
    system: System,
    first: Json,
    second: Json,
    *,
    partitioned: bool = True,
    before: float = 1.0,
    after: float = 2.0,
) -> tuple[Stream, Stream]:
    """A stream that was redefined while records came."""
    stream = system.define(partitioned=partitioned, **first)
    number = 0
    again = stream
    for seconds, change in ((before, None), (after, second)):
        if change is not None:
            shape = {name: None for name in first if name not in change and name != "kind"}
            fields = {**shape, **change, "window_type": change["kind"]}
            del fields["kind"]
            again = system.redefine(stream, **fields)
        stop = time.monotonic() + seconds
        while time.monotonic() < stop:
            system.api.push(stream.queues[0], number, partition=f"k{number % 2}")
            number += 1
            time.sleep(0.04)
    return stream, again


TUMBLING = {"kind": "tumbling", "window_duration_ms": 400}
LONGER = {"kind": "tumbling", "window_duration_ms": 700}
SLIDING = {"kind": "sliding", "window_duration_ms": 600, "window_slide_ms": 200}


@pytest.mark.parametrize(
    ("first", "second"),
    [(TUMBLING, LONGER), (LONGER, TUMBLING), (SLIDING, TUMBLING), (TUMBLING, SLIDING)],
    ids=["longer", "shorter", "sliding to tumbling", "tumbling to sliding"],
)
def test_07_windows_of_both_versions_are_delivered_once_each(
    system: System, first: Json, second: Json
) -> None:
    old, new = redefined(system, first, second)
    records = system.records(new)
    _, until_us = bounds(system, new, 1)
    from_us, _ = bounds(system, new, 2)
    assert until_us is not None
    assert from_us is not None
    assert from_us <= until_us
    expected = [row for row in system.expected(old, records) if row.start_us < until_us]
    expected += [row for row in system.expected(new, records, version=2) if row.start_us >= from_us]
    windows = system.take_all(new, len(expected))
    assert as_rows(system.sealed(new)) == oracle_rows(expected)
    assert len({window["id"] for window in windows}) == len(windows)
    for row in expected:
        (window,) = [window for window in windows if window["id"] == row.window_id]
        assert len(window["messages"]) == row.count
    # No record was left out, and the old version reads no further than it has to.
    assert {data for window in windows for data in data_of(window)} == set(range(len(records)))
    last_us = until_us + 1000 * first["window_duration_ms"]
    assert records_read(system, old, 1) == sum(record.created_us < last_us for record in records)
    assert progress(system, new)["openWindows"] == 0


def test_07_counting_divides_records_by_position(system: System) -> None:
    counting = {"kind": "count", "window_size_count": 4}
    _, new = redefined(system, TUMBLING, counting)
    records = system.records(new)
    taken = Counter(data for window in drained(system, new) for data in data_of(window))
    assert set(taken.values()) == {1}
    # The last records of each key may still wait for their fourth.
    assert len(records) - len(taken) < 2 * 4


def test_07_a_session_goes_on_in_the_new_version(system: System) -> None:
    session = {"kind": "session", "window_gap_ms": 300}
    _, new = redefined(system, session, TUMBLING)
    windows = drained(system, new)
    assert {window["version"] for window in windows} == {1, 2}
    assert {data for window in windows for data in data_of(window)} == set(range(len(system.records(new))))


def drained(system: System, stream: Stream, group: str = "last") -> list[Json]:
    """All windows, once the stream has nothing more to seal."""
    quiet = eventually(lambda: settled(system, stream), within=90)
    return system.take_all(stream, quiet, group)


def test_07_no_second_lease_on_a_key(system: System) -> None:
    _, new = redefined(system, TUMBLING, LONGER, partitioned=False, before=0.5, after=1.0)
    assert drained(system, new, "g")
    system.api.post(
        "/api/v1/stream/seek",
        {"streamName": new.name, "consumerGroup": "g", "timestamp": "2020-01-01T00:00:00Z"},
    )
    held = system.poll(new)
    assert held is not None
    assert held["version"] == 1
    assert system.poll(new, timeout=300) is None


def test_07_a_longer_grace_applies_at_once(system: System) -> None:
    stream = system.define("tumbling", window_duration_ms=500, grace_ms=60_000)
    system.api.push(stream.queues[0], 1, partition="k")
    (record,) = system.records(stream)
    wait_until(system, record.created_us + 1_500_000)
    assert system.sealed(stream) == []
    again = system.redefine(stream, window_grace_period_ms=0)
    (window,) = system.take_all(again, 1)
    assert (window["version"], window["revision"], data_of(window)) == (1, 1, [1])
    # And back: open windows wait for as long as the new definition says.
    system.api.push(stream.queues[0], 2, partition="k")
    system.redefine(stream, window_grace_period_ms=60_000)
    time.sleep(2)
    assert system.poll(stream, timeout=300) is None
    system.redefine(stream, window_grace_period_ms=0)
    assert data_of(system.take_all(stream, 1)[0]) == [2]


def test_22_sources_are_replaced(system: System) -> None:
    stream = system.define("tumbling", window_duration_ms=300)
    old, new = stream.queues[0], f"{stream.queues[0]}-new"
    system.api.configure(new)
    system.api.push(new, "before it is a source", partition="k")
    system.api.push(old, 1, partition="k")
    assert all_data(system.take_all(stream, 1)) == [1]
    again = system.redefine(stream, source_queue_names=[new])
    system.api.push(old, "no longer", partition="k")
    system.api.push(new, 2, partition="k")
    (window,) = system.take_all(again, 1)
    assert (data_of(window), window["version"]) == ([2], 1)
    assert {message["queue"] for message in window["messages"]} == {new}


def test_22_a_source_that_is_added_counts_from_that_moment(system: System) -> None:
    stream = system.define("tumbling", window_duration_ms=300)
    added = f"{stream.queues[0]}-added"
    system.api.configure(added)
    system.api.push(added, "before", partition="k")
    system.api.push(stream.queues[0], 1, partition="k")
    assert all_data(system.take_all(stream, 1)) == [1]
    again = system.redefine(stream, source_queue_names=[*stream.queues, added])
    system.api.push(added, 2, partition="k")
    system.api.push(stream.queues[0], 3, partition="k")
    assert all_data(drained(system, again)) == [1, 2, 3]


def test_22_a_stream_of_the_same_name_elsewhere_has_its_own_windows(system: System) -> None:
    stream = system.define("tumbling", window_duration_ms=300)
    other = system.define("tumbling", window_duration_ms=300, name=stream.name, namespace="elsewhere")
    system.api.push(stream.queues[0], "here", partition="k")
    system.api.push(other.queues[0], "there", partition="k")
    for each, namespace, data in ((stream, "tests", "here"), (other, "elsewhere", "there")):
        system.wait_for(each, 1)
        window = system.poll(stream, namespace=namespace)
        assert window is not None
        assert (data_of(window), window["namespace"]) == ([data], namespace)


def test_24_retention_goes_on_after_a_redefinition(system: System) -> None:
    """Records that only a version that has ended would have used are not needed."""
    old, new = redefined(system, TUMBLING, LONGER, before=0.5, after=1.0)
    queue = old.queues[0]
    drained(system, new)
    system.api.configure(queue, retentionSeconds=1)
    eventually(lambda: message_count(system, queue) == 0, within=30)
    assert progress(system, new)["openWindows"] == 0


def test_a_reset_reads_the_history_again(system: System) -> None:
    stream = system.define("tumbling", window_duration_ms=300)
    for number in range(6):
        system.api.push(stream.queues[0], number, partition=f"k{number % 2}")
        time.sleep(0.1)
    first = matches(system, stream)
    again = system.redefine(stream, reset=True)
    expected = system.expected(again, system.records(again), version=2)
    second = system.take_all(again, len(expected))
    assert as_rows(versions(system.sealed(again), 2)) == oracle_rows(expected)
    assert all_data(second) == all_data(first) == list(range(6))
    assert {window["version"] for window in second} == {2}
    assert not {window["id"] for window in first} & {window["id"] for window in second}
    # And it continues, with the new version alone.
    system.api.push(stream.queues[0], "new", partition="k0")
    (window,) = system.take_all(again, 1)
    assert (data_of(window), window["version"]) == (["new"], 2)


def test_a_reset_ends_open_windows(system: System) -> None:
    stream = system.define("tumbling", window_duration_ms=1000, grace_ms=60_000)
    system.api.push(stream.queues[0], 1, partition="k")
    eventually(lambda: progress(system, stream)["openWindows"] == 1, within=60)
    again = system.redefine(stream, reset=True, window_grace_period_ms=0)
    (window,) = drained(system, again)
    assert (data_of(window), window["version"]) == ([1], 2)
    assert progress(system, again)["openWindows"] == 0


@pytest.mark.parametrize("start", ["earliest", "latest", "time"])
def test_a_stream_starts_where_it_was_told_to(system: System, start: str) -> None:
    queue = f"{system.define('tumbling').queues[0]}-start"
    system.api.configure(queue)
    system.api.push(queue, "early", partition="k")
    time.sleep(0.02)
    middle = system.now_us()
    time.sleep(0.02)
    system.api.push(queue, "later", partition="k")
    where = {"time": iso(middle / 1e6)}.get(start, start)
    stream = system.define("tumbling", window_duration_ms=200, sources=[queue], start=where)
    system.api.push(queue, "now", partition="k")
    expected = {"earliest": ["early", "later", "now"], "latest": ["now"], "time": ["later", "now"]}[start]
    assert all_data(drained(system, stream)) == expected


def test_a_stream_that_was_deleted_and_made_again_is_a_new_one(system: System) -> None:
    stream = system.define("tumbling", window_duration_ms=300)
    system.api.push(stream.queues[0], 1, partition="k")
    (old,) = system.take_all(stream, 1)
    system.api.push(stream.queues[0], 2, partition="k")
    responded(system.api.delete(f"/api/v1/resources/streams/{stream.name}"), 200)
    body = {"streamName": stream.name, "consumerGroup": "g", "timeout": 100}
    assert system.api.post("/api/v1/stream/poll", body).status_code == 404
    again = system.define("tumbling", window_duration_ms=300, name=stream.name, sources=stream.queues)
    assert again.id != stream.id
    windows = matches(system, again)
    assert all_data(windows) == [1, 2]
    assert {window["version"] for window in windows} == {1}
    assert old["id"] not in {window["id"] for window in windows}
