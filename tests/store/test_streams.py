"""Definitions of streams: effects of a change, the start of a version, and definitions as of a seq."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from queenspark.store.definitions import Definition, to_definitions, window_queue
from queenspark.store.errors import Refused
from queenspark.store.queries import query
from queenspark.store.streams import Stream, Wanted
from tests.database import connect
from tests.store.desk import Desk, names
from tests.streams.sealing import MINUTE, Pipeline, minute

pytestmark = pytest.mark.anyio

TUMBLING = {"kind": "tumbling", "duration_us": MINUTE}


def wanted(*queues: str, spec: dict[str, Any] | None = None, **more: Any) -> Wanted:
    given: dict[str, Any] = {
        "namespace": "ns",
        "name": "s",
        "partitioned": True,
        "event_time": None,
        "lease_timeout_ms": 60_000,
    }
    return Wanted(queues=queues or ("q",), spec=spec or TUMBLING, **{**given, **more})


async def define(desk: Desk, *queues: str, **more: Any) -> Stream:
    return await desk.store.streams.define(wanted(*queues, **more))


def as_of(desk: Desk, seq: int | None = None) -> list[Definition]:
    """The definitions of all streams and versions as of a seq, or now."""
    with connect(desk.store.database.url) as connection:
        return to_definitions(connection.execute(query("definitions_as_of"), {"seq": seq}).fetchall())


async def versions(desk: Desk, seq: int | None = None) -> dict[int, Definition]:
    return {definition.version: definition for definition in as_of(desk, seq)}


def positions(definition: Definition) -> dict[str, tuple[int, int]]:
    return {source.queue: (source.txid, source.id) for source in definition.body.sources}


def head(desk: Desk) -> int:
    """The transaction id of the last message."""
    return int(desk.run("SELECT max(txid) FROM queenspark.messages")[0][0])


async def test_a_stream_has_a_window_queue_and_a_first_version(desk: Desk) -> None:
    await desk.push("m")
    stream = await define(desk, lease_timeout_ms=1500)
    assert (stream.namespace, stream.name, stream.version) == ("ns", "s", 1)
    assert stream.queue == "windows:ns/s"
    queue = await desk.store.catalog.queue(stream.queue)
    assert queue is not None
    assert (queue.lease_seconds, queue.retry_limit, queue.namespace) == (2, 3, "")
    definition = (await versions(desk))[1]
    assert definition.stream_id == stream.id
    assert definition.body.spec == TUMBLING
    assert positions(definition) == {"q": (0, 0)}


async def test_names_of_window_queues_are_unmistakable() -> None:
    assert window_queue("a/b", "c") != window_queue("a", "b/c")
    assert window_queue("a/b", "c") != window_queue("a%2Fb", "c")


async def test_unknown_sources_are_refused_and_listed(desk: Desk) -> None:
    await desk.push("m")
    with pytest.raises(Refused, match="y, x do not exist"):
        await define(desk, "y", "q", "x")
    assert await desk.store.streams.find() == []
    assert as_of(desk) == []


async def test_where_a_stream_begins(desk: Desk) -> None:
    await desk.push("old")
    desk.age(100)
    await desk.push("young")
    young = head(desk)
    await define(desk, name="earliest")
    await define(desk, name="latest", start="latest")
    time = (datetime.now(UTC) - timedelta(seconds=50)).isoformat()
    await define(desk, name="time", start=time)
    found = {definition.body.name: positions(definition)["q"] for definition in as_of(desk)}
    assert found["earliest"] == (0, 0)
    assert found["latest"] > (young, 2**62)
    assert (young - 1, 2**62) < found["time"] < (young, 2**62)
    assert found["time"][1] == desk.run("SELECT max(id) - 1 FROM queenspark.messages")[0][0]


async def test_defining_the_same_again_changes_nothing(desk: Desk) -> None:
    await desk.push("m")
    stream = await define(desk)
    before = as_of(desk)
    assert (await define(desk)).id == stream.id
    assert as_of(desk) == before


@pytest.mark.parametrize("change", [{"grace_us": 5}, {"late": "drop"}, {"idle_us": 7, "clock": "ingest"}])
async def test_options_that_do_not_affect_the_shape_keep_the_version(
    desk: Desk, change: dict[str, Any]
) -> None:
    await desk.push("m")
    spec = {**TUMBLING, "clock": "ingest"}
    await define(desk, spec=spec)
    stream = await define(desk, spec={**spec, **change})
    assert stream.version == 1
    found = await versions(desk)
    assert list(found) == [1]
    assert found[1].body.spec == {**spec, **change}


async def test_a_lease_time_applies_at_once(desk: Desk) -> None:
    await desk.push("m")
    await define(desk)
    stream = await define(desk, lease_timeout_ms=5000)
    assert stream.lease_timeout_ms == 5000
    assert len(as_of(desk)) == 1


async def test_sources_are_replaced_and_added_ones_count_from_now(desk: Desk) -> None:
    for queue in ("a", "b", "c"):
        await desk.push("m", queue=queue)
    last = head(desk)
    await define(desk, "a", "b")
    stream = await define(desk, "b", "c")
    found = positions((await versions(desk))[1])
    assert stream.version == 1
    assert list(found) == ["b", "c"]
    assert found["b"] == (0, 0)
    assert found["c"] > (last, 2**62)


SHAPES: list[dict[str, Any]] = [
    {"spec": {"kind": "tumbling", "duration_us": 2 * MINUTE}},
    {"spec": {"kind": "sliding", "duration_us": MINUTE, "slide_us": MINUTE // 2}},
    {"spec": {"kind": "session", "gap_us": MINUTE}},
    {"spec": {"kind": "count", "size": 5}},
    {"partitioned": False},
    {"event_time": "data.ts", "spec": {**TUMBLING, "clock": "event"}},
]


@pytest.mark.parametrize("change", SHAPES)
async def test_a_changed_shape_is_a_new_version(desk: Desk, change: dict[str, Any]) -> None:
    await desk.push("m")
    await define(desk)
    stream = await define(desk, **change)
    assert stream.version == 2
    found = await versions(desk)
    assert found[2].body.spec == change.get("spec", TUMBLING)
    assert found[2].body.partitioned == change.get("partitioned", True)
    assert found[1].body.spec == TUMBLING


async def test_versions_meet_at_a_boundary_of_the_old_grid(desk: Desk) -> None:
    await desk.push("m")
    await define(desk)
    before = datetime.now(UTC).timestamp() * 1e6
    await define(desk, spec={"kind": "tumbling", "duration_us": 7 * MINUTE})
    found = await versions(desk)
    boundary, begin = found[1].body.until_us, found[2].body.from_us
    assert boundary is not None
    assert begin is not None
    assert boundary % MINUTE == 0
    assert before < boundary <= before + MINUTE + 5_000_000
    # No record is left out: the new version's first window reaches back to the boundary, or lies on it.
    assert begin % (7 * MINUTE) == 0
    assert begin <= boundary < begin + 7 * MINUTE
    assert found[1].body.from_us is None
    assert found[2].body.until_us is None


async def test_a_new_version_reads_back_as_far_as_its_first_window_reaches(desk: Desk) -> None:
    await desk.push("hours ago")
    desk.age(7200)
    await desk.push("minutes ago")
    recent = head(desk)
    desk.run(
        "UPDATE queenspark.messages SET created_at = created_at - interval '2 minutes' WHERE txid = %s",
        recent,
    )
    await define(desk)
    await define(desk, spec={"kind": "tumbling", "duration_us": 60 * MINUTE})
    start = positions((await versions(desk))[2])["q"]
    assert (recent - 1, 2**62) < start < (recent, 2**62)


@pytest.mark.parametrize("first", [True, False])
async def test_where_counting_is_involved_records_are_divided_by_position(desk: Desk, first: bool) -> None:
    await desk.push("m")
    specs = [{"kind": "count", "size": 5}, TUMBLING]
    await define(desk, spec=specs[0 if first else 1])
    await define(desk, spec=specs[1 if first else 0])
    found = await versions(desk)
    until = found[1].body.until
    assert until is not None
    assert positions(found[2]) == {"q": (until.txid, until.id)}
    assert until.txid > head(desk)
    assert found[1].body.until_us is None
    assert found[2].body.from_us is None


async def test_no_record_falls_between_two_versions_while_pushes_go_on(desk: Desk) -> None:
    await desk.push("m")
    await define(desk)
    over = threading.Event()

    def push() -> None:
        with desk.connect() as connection:
            while not over.is_set():
                connection.execute("SELECT pg_current_xact_id()")
                connection.commit()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(asyncio.to_thread(push))
        for n in range(20):
            await define(desk, spec=TUMBLING if n % 2 else {"kind": "count", "size": 5})
        over.set()
    found = await versions(desk)
    for version in range(1, 21):
        until = found[version].body.until
        assert until is not None
        assert positions(found[version + 1]) == {"q": (until.txid, until.id)}


async def test_sessions_begin_at_once(desk: Desk) -> None:
    await desk.push("m")
    await define(desk)
    await define(desk, spec={"kind": "session", "gap_us": MINUTE})
    found = await versions(desk)
    assert found[2].body.from_us is None
    assert positions(found[2])["q"] > (head(desk), 2**62)


async def test_reset_reads_history_again_and_ends_earlier_versions(desk: Desk) -> None:
    await desk.push("m")
    await define(desk, start="latest")
    await define(desk, spec=SHAPES[0]["spec"], start="latest")
    stream = await define(desk, spec=SHAPES[0]["spec"], reset=True, start="earliest")
    assert stream.version == 3
    found = await versions(desk)
    assert [found[n].body.until_us for n in (1, 2)] == [-(2**62)] * 2
    assert found[3].body.from_us is None
    assert positions(found[3]) == {"q": (0, 0)}


async def test_reset_begins_where_the_stream_began(desk: Desk) -> None:
    await desk.push("m")
    await define(desk)
    await define(desk, reset=True)
    assert positions((await versions(desk))[2]) == {"q": (0, 0)}


async def test_definitions_as_of_a_moment_never_change(desk: Desk) -> None:
    await desk.push("m")
    stream = await define(desk)
    first = (await versions(desk))[1].seq
    before = as_of(desk, first)
    await define(desk, spec={**TUMBLING, "grace_us": 1})
    await define(desk, spec=SHAPES[0]["spec"])
    await desk.store.streams.delete(stream)
    assert as_of(desk, first) == before
    assert as_of(desk) == []
    assert as_of(desk, first - 1) == []


@pytest.mark.every_postgres
async def test_a_deleted_stream_is_gone_with_its_windows(desk: Desk) -> None:
    await desk.push("m")
    stream = await define(desk)
    pipeline = Pipeline(desk.store.database.url)
    pipeline.seal(stream.id, stream.queue_id, minute("a", 1), stats=[{"stream": stream.id, "version": 1}])
    pipeline.sink.close()
    assert await desk.pop(group="g", queue=stream.queue) is not None
    assert await desk.store.streams.delete(stream)
    assert not await desk.store.streams.delete(stream)
    assert await desk.store.streams.named("s") == []
    assert desk.run("SELECT count(*) FROM queenspark.stream_stats") == [(0,)]
    await desk.store.sweeper.run()
    assert desk.run("SELECT count(*) FROM queenspark.messages") == [(1,)]
    assert (await define(desk)).id != stream.id


async def test_a_queue_in_the_way_is_named(desk: Desk) -> None:
    await desk.push("m")
    await desk.push("m", queue="windows:ns/s")
    with pytest.raises(Refused, match="windows:ns/s"):
        await define(desk)


@pytest.mark.every_postgres
async def test_writers_of_definitions_come_one_after_the_other(desk: Desk) -> None:
    await desk.push("m")
    with desk.connect() as connection:
        connection.execute("LOCK TABLE queenspark.definitions IN SHARE ROW EXCLUSIVE MODE")
        with psycopg.connect(desk.store.database.url, options="-c lock_timeout=100ms") as other:
            with pytest.raises(psycopg.errors.LockNotAvailable):
                other.execute("LOCK TABLE queenspark.definitions IN SHARE ROW EXCLUSIVE MODE")
            other.rollback()
            # Readers do not wait.
            assert as_of(desk) == []


async def seek(desk: Desk, stream: Stream, seconds: float) -> None:
    await desk.store.streams.seek(stream, "g", datetime.fromtimestamp(seconds, UTC))


async def popped(desk: Desk, stream: Stream) -> list[str]:
    """The windows that a group still gets, key and minute."""
    found = await desk.pop(100, queue=stream.queue, partitions=100, auto_ack=True)
    return [f"{name.split(':')[1]}{int(name.split(':')[2]) // 60_000}" for name in names(found)]


@pytest.mark.every_postgres
async def test_seek_goes_to_the_first_window_that_ends_after_the_time(desk: Desk) -> None:
    await desk.push("m")
    stream = await define(desk)
    pipeline = Pipeline(desk.store.database.url)
    pipeline.seal(
        stream.id,
        stream.queue_id,
        minute("a", 1),
        minute("b", 5),
        minute("a", 2),
        minute("c", 1),
        minute("a", 3),
    )
    assert sorted(await popped(desk, stream)) == ["a1", "a2", "a3", "b5", "c1"]
    await seek(desk, stream, 150)
    assert await popped(desk, stream) == ["b5", "a2", "a3"]
    await seek(desk, stream, 0)
    assert sorted(await popped(desk, stream)) == ["a1", "a2", "a3", "b5", "c1"]
    await seek(desk, stream, 10_000)
    assert await popped(desk, stream) == []
    # Later windows that end before it are skipped, of known keys and of new ones.
    pipeline.seal(stream.id, stream.queue_id, minute("c", 2), minute("new", 2))
    assert await popped(desk, stream) == []
    pipeline.seal(stream.id, stream.queue_id, minute("c", 200), minute("new", 3), minute("new", 200))
    assert sorted(await popped(desk, stream)) == ["c200", "new200"]
    pipeline.sink.close()


Again = Callable[[Desk, Stream], Awaitable[None]]


async def beginning(desk: Desk, stream: Stream) -> None:
    assert await desk.store.groups.seek(stream.queue, "g", "beginning")


async def beginning_of_partitions(desk: Desk, stream: Stream) -> None:
    for key in ("a", "b"):
        assert await desk.store.groups.seek(stream.queue, "g", "beginning", partition=key)


async def restart(desk: Desk, stream: Stream) -> None:
    assert await desk.store.groups.delete("g", stream.queue, keep_start=True) == 1


async def seek_of_an_older_version(desk: Desk, stream: Stream) -> None:
    """The statements of version 0013, with a time before all windows."""
    desk.run(
        "UPDATE queenspark.places SET available_at = clock_timestamp(), cursor_txid = 0, cursor_id = 0,"
        " end_txid = 0, end_id = 0, pending = '{}', leased = '{}', lease_id = NULL, lease_expires_at = NULL"
    )
    desk.run("UPDATE queenspark.groups SET seen_txid = horizon(), seen_id = 0")


@pytest.mark.parametrize(
    "again",
    [beginning, beginning_of_partitions, restart, seek_of_an_older_version],
    ids=lambda it: it.__name__,
)
async def test_a_later_seek_replaces_the_time_of_an_earlier_one(desk: Desk, again: Again) -> None:
    await desk.push("m")
    stream = await define(desk)
    pipeline = Pipeline(desk.store.database.url)
    pipeline.seal(stream.id, stream.queue_id, minute("a", 1), minute("b", 1))
    assert sorted(await popped(desk, stream)) == ["a1", "b1"]
    await seek(desk, stream, 10_000)
    pipeline.seal(stream.id, stream.queue_id, minute("a", 2))
    assert await popped(desk, stream) == []
    await again(desk, stream)
    assert sorted(await popped(desk, stream)) == ["a1", "a2", "b1"]
    pipeline.seal(stream.id, stream.queue_id, minute("a", 3), minute("b", 2))
    assert sorted(await popped(desk, stream)) == ["a3", "b2"]
    await seek(desk, stream, 10_000)
    pipeline.seal(stream.id, stream.queue_id, minute("a", 4), minute("a", 200))
    assert await popped(desk, stream) == ["a200"], "windows before the latest seek are skipped again"
    pipeline.sink.close()


async def test_a_seek_in_one_partition_leaves_the_time_of_the_others(desk: Desk) -> None:
    await desk.push("m")
    stream = await define(desk)
    pipeline = Pipeline(desk.store.database.url)
    pipeline.seal(stream.id, stream.queue_id, minute("a", 1), minute("b", 1))
    await seek(desk, stream, 10_000)
    assert await desk.store.groups.seek(stream.queue, "g", "beginning", partition="a")
    pipeline.seal(stream.id, stream.queue_id, minute("a", 2), minute("b", 2), minute("new", 2))
    assert await popped(desk, stream) == ["a1", "a2"]
    pipeline.sink.close()


async def test_a_new_start_replaces_the_time_of_a_seek(desk: Desk) -> None:
    await desk.push("m")
    stream = await define(desk)
    pipeline = Pipeline(desk.store.database.url)
    await seek(desk, stream, 10_000)
    assert await desk.store.groups.set_start("g", datetime.now(UTC)) == 1
    pipeline.seal(stream.id, stream.queue_id, minute("a", 1))
    assert await popped(desk, stream) == ["a1"]
    pipeline.sink.close()


async def test_seek_finds_windows_of_a_push_that_commits_later(desk: Desk) -> None:
    await desk.push("m")
    stream = await define(desk)
    pipeline = Pipeline(desk.store.database.url)
    pipeline.seal(stream.id, stream.queue_id, minute("a", 1))
    with desk.connect() as connection:
        connection.execute("SELECT pg_current_xact_id()")
        pipeline.seal(stream.id, stream.queue_id, minute("a", 2), minute("b", 2))
        await seek(desk, stream, 0)
        assert await popped(desk, stream) == ["a1"]
    pipeline.sink.close()
    assert sorted(await popped(desk, stream)) == ["a2", "b2"]
