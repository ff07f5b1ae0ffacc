"""The known holes of windows, by number, as far as the pipeline has to close them.

`tests/streams/test_correctness.py` has those that need no pipeline. 18, 19 and 27 are about a client.
"""

import threading
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from tests.streams.stream_api import data_of
from tests.system.system import GLOBAL, Stream, System, as_rows, microseconds, oracle_rows
from tests.wire.api import Api, Json, answered
from tests.wire.deadline import eventually

PUSH = """
    INSERT INTO queenspark.messages (txid, id, partition_id, created_at, queue_id, transaction_id, payload)
    SELECT queenspark.current_txid(), nextval('queenspark.message_blocks') * 1000, p.id, clock_timestamp(),
           p.queue_id, 'late', '"late"'
    FROM queenspark.partitions p JOIN queenspark.queues q ON q.id = p.queue_id
    WHERE q.name = %s AND p.name = %s RETURNING (extract(epoch FROM created_at) * 1000000)::bigint
"""


def push_open(connection: psycopg.Connection[Any], queue: str, partition: str) -> int:
    """Push as a broker does, without committing; when it was created."""
    row = connection.execute(PUSH, (queue, partition)).fetchone()
    assert row is not None
    return int(row[0])


def wait_until(system: System, time_us: int) -> None:
    """Wait for the database's clock."""
    while (left := time_us - system.now_us()) > 0:
        time.sleep(left / 1e6)


def versions(windows: Iterable[Json], version: int) -> list[Json]:
    return [window for window in windows if window["version"] == version]


def all_data(windows: Iterable[Json]) -> list[Any]:
    """What the messages of all windows carry, sorted."""
    return sorted((data for window in windows for data in data_of(window)), key=str)


def matches(system: System, stream: Stream) -> list[Json]:
    """Take all windows; they must be those of the oracle."""
    expected = system.expected(stream, system.records(stream))
    windows = system.take_all(stream, len(expected))
    assert as_rows(system.sealed(stream)) == oracle_rows(expected)
    return windows


def bounds(system: System, stream: Stream, version: int) -> tuple[int | None, int | None]:
    """From when and until when windows of a version come out."""
    ((body,),) = system.run(
        "SELECT body FROM queenspark.definitions WHERE stream_id = %s AND version = %s"
        " ORDER BY seq DESC LIMIT 1",
        stream.id, version,
    )  # fmt: skip
    return body["from_us"], body["until_us"]


def message_count(system: System, queue: str) -> int:
    ((count,),) = system.run(
        "SELECT count(*) FROM queenspark.messages m JOIN queenspark.queues q ON q.id = m.queue_id"
        " WHERE q.name = %s",
        queue,
    )
    return int(count)


def records_read(system: System, stream: Stream, version: int) -> int:
    ((count,),) = system.run(
        "SELECT sum(records)::integer FROM queenspark.stream_stats WHERE stream_id = %s AND version = %s",
        stream.id, version,
    )  # fmt: skip
    return int(count)


def progress(system: System, stream: Stream) -> Json:
    found: Json = system.api.read(f"/api/v1/resources/streams/{stream.name}")["progress"]
    return found


def test_01_an_idle_source_does_not_hold_up_the_others(system: System) -> None:
    stream = system.define("tumbling", queues=2, window_duration_ms=300)
    system.api.push(stream.queues[1], "long ago", partition="k")
    system.wait_for(stream, 1)
    for number in range(4):
        system.api.push(stream.queues[0], number, partition="k")
        time.sleep(0.15)
    assert all_data(matches(system, stream)) == [0, 1, 2, 3, "long ago"]


def test_01_the_last_window_of_a_lone_queue_is_sealed_by_silence(system: System) -> None:
    stream = system.define("tumbling", window_duration_ms=300, partitioned=False)
    system.api.push(stream.queues[0], "only")
    assert all_data(matches(system, stream)) == ["only"]


def test_02_a_source_that_never_had_a_message_is_a_source_like_others(system: System) -> None:
    stream = system.define("tumbling", queues=2, window_duration_ms=300)
    system.api.push(stream.queues[0], 1, partition="k")
    system.wait_for(stream, 1)
    system.api.push(stream.queues[1], 2, partition="k")
    assert all_data(matches(system, stream)) == [1, 2]


@pytest.mark.parametrize("ends", ["commit", "rollback"])
def test_03_a_window_waits_for_a_push_that_commits_late(system: System, ends: str) -> None:
    stream = system.define("tumbling", window_duration_ms=300)
    queue = stream.queues[0]
    system.api.push(queue, "before", partition="k")
    assert len(system.drain(stream, 1)) == 1
    with psycopg.connect(system.database_url) as late:
        created = push_open(late, queue, "k")
        end = created // 300_000 * 300_000 + 300_000
        for number in range(3):
            system.api.push(queue, number, partition="k")
        wait_until(system, end + 1_000_000)
        system.api.push(queue, "after", partition="k")
        wait_until(system, end + 2_500_000)
        # Neither its window nor a later one is sealed as long as it may still appear.
        assert len(system.sealed(stream)) == 1
        assert system.poll(stream, timeout=200) is None
        late.execute(ends)
    expected = system.expected(stream, system.records(stream))
    windows = system.take_all(stream, len(expected) - 1)
    assert as_rows(system.sealed(stream)) == oracle_rows(expected)
    assert all_data(windows) == [0, 1, 2, "after", *(["late"] if ends == "commit" else [])]
    if ends == "commit":
        (own,) = [window for window in windows if "late" in data_of(window)]
        assert microseconds(own["start"]) <= created < microseconds(own["end"]) == end
        assert own["revision"] == 1


@pytest.mark.parametrize("when", ["before", "after"])
def test_04_a_global_stream_starts_for_a_new_group(system: System, when: str) -> None:
    """Whether it asked for the first time before or after the windows were sealed."""
    stream = system.define("tumbling", queues=2, window_duration_ms=300, partitioned=False)
    if when == "before":
        assert system.poll(stream, "new", timeout=0) is None
    for number in range(4):
        system.api.push(stream.queues[number % 2], number, partition=f"p{number}")
    windows = matches(system, stream)
    assert {window["key"] for window in windows} == {GLOBAL}
    again = system.take_all(stream, len(windows), "new")
    assert [window["id"] for window in again] == [window["id"] for window in windows]
    assert all_data(again) == [0, 1, 2, 3]


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
    quiet = eventually(lambda: _settled(system, stream), within=90)
    return system.take_all(stream, quiet, group)


def _settled(system: System, stream: Stream) -> int:
    """How many windows there are, when there are some, none is left to seal, and none was for a while."""
    before = len(system.sealed(stream)) if _all_read(system, stream) else 0
    time.sleep(2)
    return before if before == len(system.sealed(stream)) else 0


def _all_read(system: System, stream: Stream) -> bool:
    """Whether no record is unread and no window open but those that wait for their count."""
    ((open_windows,),) = system.run(
        "SELECT coalesce(sum(t.open_windows), 0) FROM queenspark.stream_stats t"
        " JOIN queenspark.streams s ON s.id = t.stream_id"
        " WHERE s.id = %s AND NOT (%s AND t.version = s.version)",
        stream.id, stream.spec.kind == "count",
    )  # fmt: skip
    return not open_windows and not progress(system, stream)["lagSeconds"]


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
    # And back: what is open then waits for as long as it says now.
    system.api.push(stream.queues[0], 2, partition="k")
    system.redefine(stream, window_grace_period_ms=60_000)
    time.sleep(2)
    assert system.poll(stream, timeout=300) is None
    system.redefine(stream, window_grace_period_ms=0)
    assert data_of(system.take_all(stream, 1)[0]) == [2]


def test_10_a_seek_to_an_unaligned_time_shifts_no_window(system: System) -> None:
    stream = system.define("tumbling", window_duration_ms=300)
    for number in range(8):
        system.api.push(stream.queues[0], number, partition=f"k{number % 2}")
        time.sleep(0.1)
    windows = matches(system, stream)
    middle = sorted(microseconds(window["start"]) for window in windows)[len(windows) // 2]
    seconds = (middle + 123_456) / 1e6
    body = {"streamName": stream.name, "consumerGroup": "g", "timestamp": _iso(seconds)}
    answered(system.api.post("/api/v1/stream/seek", body), 200)
    again = {window["id"] for window in windows if microseconds(window["end"]) > middle}
    # Keys that appear later come too, on the same grid.
    system.api.push(stream.queues[0], "new", partition="new")
    found = system.take_all(stream, len(again) + 1)
    assert {window["id"] for window in found if window["key"] != "new"} == again
    assert as_rows(system.sealed(stream)) == oracle_rows(system.expected(stream, system.records(stream)))


def _iso(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC).isoformat()}"


def test_12_a_key_is_a_partition_name_over_all_sources(system: System) -> None:
    stream = system.define("tumbling", queues=2, window_duration_ms=500)
    other = system.define("tumbling", window_duration_ms=500, sources=stream.queues)
    for queue in stream.queues:
        system.api.push(queue, queue, partition="k")
        system.api.push(queue, f"{queue} x", partition="x")
    own, others = matches(system, stream), matches(system, other)
    assert all_data(windows_of(own, "k")) == sorted(stream.queues)
    assert all_data(windows_of(own, "x")) == [f"{queue} x" for queue in sorted(stream.queues)]
    ids = [window["id"] for window in own + others]
    assert len(set(ids)) == len(ids)


def windows_of(windows: Iterable[Json], key: str) -> list[Json]:
    return [window for window in windows if window["key"] == key]


def test_13_empty_windows_are_skipped(system: System) -> None:
    stream = system.define("tumbling", window_duration_ms=50)
    for number in range(3):
        system.api.push(stream.queues[0], number, partition="k")
        time.sleep(0.8)
    assert [data_of(window) for window in matches(system, stream)] == [[0], [1], [2]]


def test_13_empty_windows_come_when_asked_for(system: System) -> None:
    stream = system.define("tumbling", window_duration_ms=100, emit_empty=True)
    system.api.push(stream.queues[0], 0, partition="k")
    time.sleep(1)
    system.api.push(stream.queues[0], 1, partition="k")
    records = system.records(stream)
    upto = records[1].created_us + 1_500_000
    expected = system.expected(stream, records, upto)
    assert len(expected) > 20
    found = system.wait_for(stream, len(expected))[: len(expected)]
    assert as_rows(found) == oracle_rows(expected)
    windows = system.drain(stream, len(expected))
    assert [data for window in windows for data in data_of(window)] == [0, 1]
    assert [window["count"] for window in windows] == [len(window["messages"]) for window in windows]
    starts = [microseconds(window["start"]) for window in windows]
    assert starts == list(range(starts[0], starts[0] + len(starts) * 100_000, 100_000))
    # No longer asked for, there are none.
    system.redefine(stream, emit_empty=False)
    assert eventually(lambda: _settled(system, stream), within=90)


def test_21_pushes_do_not_wait_for_each_other(system: System) -> None:
    """An open push to a queue holds up no other push, to the same or to several queues."""
    stream = system.define("tumbling", queues=3, window_duration_ms=500)
    first, second, third = stream.queues
    for queue in stream.queues:
        system.api.push(queue, "made", partition="k")
    with psycopg.connect(system.database_url) as late:
        push_open(late, first, "k")
        begin = time.monotonic()
        for queues in ((first,), (second, first), (first, third), (third, second, first)):
            items = [{"queue": queue, "partition": "k", "payload": len(queues)} for queue in queues]
            assert system.api.push_items(items).status_code == 201
        assert time.monotonic() - begin < 2
        late.commit()
    matches(system, stream)


def test_21_pushes_to_several_queues_in_any_order_do_not_deadlock(system: System) -> None:
    stream = system.define("tumbling", queues=3, window_duration_ms=500)
    start = threading.Barrier(4)

    def push(worker: int) -> None:
        with Api(system.api.url) as api:
            start.wait()
            for number in range(25):
                order = stream.queues if (worker + number) % 2 else stream.queues[::-1]
                items = [
                    {"queue": queue, "partition": f"k{number % 3}", "payload": [worker, number]}
                    for queue in order
                ]
                assert api.push_items(items).status_code == 201

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(push, range(4)))
    windows = matches(system, stream)
    assert sum(len(window["messages"]) for window in windows) == 4 * 25 * 3


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


def test_24_retention_waits_for_windows(system: System) -> None:
    stream = system.define("tumbling", window_duration_ms=3000)
    queue = stream.queues[0]
    system.api.configure(queue, retentionSeconds=1)
    assert system.poll(stream, timeout=0) is None
    system.api.push(queue, 1, 2, partition="k")
    (first, *_) = system.records(stream)
    # The window is open.
    if not system.sealed(stream):
        assert message_count(system, queue) == 2
    (sealed,) = system.wait_for(stream, 1)
    # It is sealed, and the group has not answered it.
    wait_until(system, max(sealed["end"], first.created_us) + 2_500_000)
    assert message_count(system, queue) == 2
    assert progress(system, stream)["retention"]["heldSeconds"] > 0
    window = system.poll(stream)
    assert window is not None
    assert data_of(window) == [1, 2]
    time.sleep(1)
    assert message_count(system, queue) == 2
    system.ack(window)
    eventually(lambda: message_count(system, queue) == 0, within=30)
    assert progress(system, stream)["retention"]["heldSeconds"] == 0


def test_24_retention_goes_on_after_a_redefinition(system: System) -> None:
    """What only a version that has ended would have had a window for is not needed."""
    old, new = redefined(system, TUMBLING, LONGER, before=0.5, after=1.0)
    queue = old.queues[0]
    drained(system, new)
    system.api.configure(queue, retentionSeconds=1)
    eventually(lambda: message_count(system, queue) == 0, within=30)
    assert progress(system, new)["openWindows"] == 0


@pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "global"])
def test_25_a_partition_may_be_called_like_the_global_key(system: System, partitioned: bool) -> None:
    stream = system.define("tumbling", window_duration_ms=500, partitioned=partitioned)
    items = [
        {"queue": stream.queues[0], "partition": name, "payload": name} for name in (GLOBAL, "x", GLOBAL)
    ]
    system.api.push_items(items)
    own = windows_of(matches(system, stream), GLOBAL)
    assert all_data(own) == ([GLOBAL, GLOBAL] if partitioned else [GLOBAL, GLOBAL, "x"])


def test_25_times_are_utc_and_ids_are_milliseconds(system: System) -> None:
    """The time zone of the database is another one."""
    assert system.run("SHOW timezone") == [("Asia/Kolkata",)]
    stream = system.define("tumbling", window_duration_ms=500, event_time="data.at")
    system.api.push(stream.queues[0], {"at": "2025-02-19T21:20:00.400"}, partition="a:b:c")
    system.api.push(stream.queues[0], {"at": "2025-02-20T02:50:00.400+05:30"}, partition="a:b:c")
    system.api.push(stream.queues[0], {"at": 1_740_000_060_000}, partition="a:b:c")
    window = system.poll(stream, timeout=20_000)
    assert window is not None
    assert (window["start"], window["end"]) == ("2025-02-19T21:20:00.000Z", "2025-02-19T21:20:00.500Z")
    assert window["id"] == f"{stream.id}:a:b:c:1740000000000:1740000000500"
    assert len(window["messages"]) == 2


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
    # And it goes on, with the new version alone.
    system.api.push(stream.queues[0], "new", partition="k0")
    (window,) = system.take_all(again, 1)
    assert (data_of(window), window["version"]) == (["new"], 2)


def test_a_reset_ends_what_is_open(system: System) -> None:
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
    where = {"time": _iso(middle / 1e6)}.get(start, start)
    stream = system.define("tumbling", window_duration_ms=200, sources=[queue], start=where)
    system.api.push(queue, "now", partition="k")
    expected = {"earliest": ["early", "later", "now"], "latest": ["now"], "time": ["later", "now"]}[start]
    assert all_data(drained(system, stream)) == expected


def test_a_stream_that_was_deleted_and_made_again_is_a_new_one(system: System) -> None:
    stream = system.define("tumbling", window_duration_ms=300)
    system.api.push(stream.queues[0], 1, partition="k")
    (old,) = system.take_all(stream, 1)
    system.api.push(stream.queues[0], 2, partition="k")
    answered(system.api.delete(f"/api/v1/resources/streams/{stream.name}"), 200)
    body = {"streamName": stream.name, "consumerGroup": "g", "timeout": 100}
    assert system.api.post("/api/v1/stream/poll", body).status_code == 404
    again = system.define("tumbling", window_duration_ms=300, name=stream.name, sources=stream.queues)
    assert again.id != stream.id
    windows = matches(system, again)
    assert all_data(windows) == [1, 2]
    assert {window["version"] for window in windows} == {1}
    assert old["id"] not in {window["id"] for window in windows}
