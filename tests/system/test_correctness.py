"""The known holes of windows, by number, as far as the pipeline has to close them.

7 and 22 are in `test_redefinition.py`, those that need no pipeline in `tests/streams/test_correctness.py`;
18, 19 and 27 are about a client.
"""

import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from tests.database import connect
from tests.streams.stream_api import data_of
from tests.system.checks import all_data, iso, matches, message_count, progress, settled, wait_until
from tests.system.system import GLOBAL, System, as_rows, microseconds, oracle_rows
from tests.wire.api import Api, Json, responded
from tests.wire.deadline import eventually

pytestmark = pytest.mark.together

PUSH = """
    INSERT INTO queenspark.messages (txid, id, partition_id, created_at, queue_id, transaction_id, payload)
    SELECT current_txid(), nextval('queenspark.message_blocks') * 1000, p.id, clock_timestamp(),
           p.queue_id, 'late', '"late"'
    FROM queenspark.partitions p JOIN queenspark.queues q ON q.id = p.queue_id
    WHERE q.name = %s AND p.name = %s RETURNING (extract(epoch FROM created_at) * 1000000)::bigint
"""


def push_open(connection: psycopg.Connection[Any], queue: str, partition: str) -> int:
    """Push as a broker does, without committing; return its creation time."""
    row = connection.execute(PUSH, (queue, partition)).fetchone()
    assert row is not None
    return int(row[0])


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
    with connect(system.database_url, autocommit=False) as late:
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
    """Its first poll can come before or after the windows were sealed."""
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


def test_10_a_seek_to_an_unaligned_time_shifts_no_window(system: System) -> None:
    stream = system.define("tumbling", window_duration_ms=300)
    for number in range(8):
        system.api.push(stream.queues[0], number, partition=f"k{number % 2}")
        time.sleep(0.1)
    windows = matches(system, stream)
    middle = sorted(microseconds(window["start"]) for window in windows)[len(windows) // 2]
    seconds = (middle + 123_456) / 1e6
    body = {"streamName": stream.name, "consumerGroup": "g", "timestamp": iso(seconds)}
    responded(system.api.post("/api/v1/stream/seek", body), 200)
    again = {window["id"] for window in windows if microseconds(window["end"]) > middle}
    # Keys that appear later come too, on the same grid.
    system.api.push(stream.queues[0], "new", partition="new")
    found = system.take_all(stream, len(again) + 1)
    assert {window["id"] for window in found if window["key"] != "new"} == again
    assert as_rows(system.sealed(stream)) == oracle_rows(system.expected(stream, system.records(stream)))


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
    assert eventually(lambda: settled(system, stream), within=90)


def test_21_pushes_do_not_wait_for_each_other(system: System) -> None:
    """An open push to a queue holds up no other push, to the same or to several queues."""
    stream = system.define("tumbling", queues=3, window_duration_ms=500)
    first, second, third = stream.queues
    for queue in stream.queues:
        system.api.push(queue, "made", partition="k")
    with connect(system.database_url, autocommit=False) as late:
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
    # It is sealed, and the group has not acked it.
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
