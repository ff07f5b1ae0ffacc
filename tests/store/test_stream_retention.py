"""Retention waits for streams: for open or unread messages, and for unacked windows."""

import json
from typing import Any

import pytest

from queenspark.store.streams import Stream
from queenspark.store.sweeper import Sweeper
from tests.store.desk import Desk
from tests.store.test_retention import left
from tests.store.test_streams import define
from tests.streams.sealing import Pipeline, Position, minute

pytestmark = pytest.mark.anyio


@pytest.fixture
def pipeline(desk: Desk) -> Any:
    """A pipeline whose sink is closed afterwards."""
    pipeline = Pipeline(desk.store.database.url)
    yield pipeline
    pipeline.sink.close()


async def old_messages(desk: Desk, *names: str, **options: Any) -> dict[str, Position]:
    """Messages whose time is over, each with a position of its own."""
    await desk.configure(**(options or {"retentionSeconds": 60}))
    for name in names:
        await desk.push(name)
    desk.age(100)
    rows = desk.run("SELECT transaction_id, txid, id FROM queenspark.messages WHERE trace_id IS NULL")
    return {name: (txid, id_) for name, txid, id_ in rows}


def reads(stream: Stream, desk: Desk, position: Position, **more: Any) -> str:
    """The pipeline's state: it has read up to a position and knows all definitions."""
    ((seq,),) = desk.run("SELECT max(seq) FROM queenspark.definitions")
    return json.dumps({"txid": position[0], "id": position[1], "seq": seq, **more})


def opened(stream: Stream, position: Position | None) -> list[dict[str, Any]]:
    txid, id_ = position or (None, None)
    return [{"stream": stream.id, "version": stream.version, "open_txid": txid, "open_id": id_}]


@pytest.mark.every_postgres
@pytest.mark.parametrize(
    "options", [{"retentionSeconds": 60}, {"ttl": 60}, {"completedRetentionSeconds": 60}], ids=str
)
async def test_messages_that_the_pipeline_has_not_read_are_kept(
    desk: Desk, pipeline: Pipeline, options: dict[str, int]
) -> None:
    at = await old_messages(desk, "a", "b", "c", **options)
    if "completedRetentionSeconds" in options:
        await desk.popped()
    stream = await define(desk)
    assert await desk.store.sweeper.run() == 0
    pipeline.push(state=reads(stream, desk, at["b"]))
    assert await desk.store.sweeper.run() == 2
    assert left(desk) == ["c"]


async def test_messages_of_an_open_window_are_kept(desk: Desk, pipeline: Pipeline) -> None:
    at = await old_messages(desk, "a", "b", "c", "d")
    stream = await define(desk)
    pipeline.push(state=reads(stream, desk, at["d"]), stats=opened(stream, at["b"]))
    await desk.store.sweeper.run()
    assert left(desk) == ["b", "c", "d"]
    pipeline.batch += 1
    pipeline.push(state=reads(stream, desk, at["d"]), stats=opened(stream, None))
    await desk.store.sweeper.run()
    assert left(desk) == []


async def test_a_stream_that_is_behind_keeps_its_unread_messages(desk: Desk, pipeline: Pipeline) -> None:
    at = await old_messages(desk, "a", "b", "c")
    stream = await define(desk)
    behind = {f"{stream.id}:1": [*at["b"], 0]}
    pipeline.push(state=reads(stream, desk, at["c"], behind=behind))
    await desk.store.sweeper.run()
    assert left(desk) == ["c"]


async def test_a_stream_that_the_pipeline_does_not_know_yet_keeps_its_history(
    desk: Desk, pipeline: Pipeline
) -> None:
    at = await old_messages(desk, "a", "b", "c")
    stream = await define(desk)
    state = reads(stream, desk, at["c"])
    await define(desk, name="later")
    pipeline.push(state=state)
    assert await desk.store.sweeper.run() == 0


async def test_a_stream_that_begins_later_keeps_nothing_from_before(desk: Desk) -> None:
    await old_messages(desk, "a", "b")
    await define(desk, start="latest")
    await desk.store.sweeper.run()
    assert left(desk) == []


@pytest.mark.every_postgres
async def test_unacked_windows_keep_their_messages(
    desk: Desk, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queenspark.store.sweeper._NOTES", 10**9)  # each run makes a note
    at = await old_messages(desk, "a", "b", "c")
    stream = await define(desk)
    quick = Sweeper(desk.store.database, hold_seconds=3600)
    # A first run records the open windows; then windows are sealed, and a group has not acked the second.
    pipeline.push(state=reads(stream, desk, at["b"]), stats=opened(stream, at["b"]))
    assert await quick.run() == 1
    pipeline.seal(
        stream.id, stream.queue_id, minute("k", 1, sources=[(1, at["b"], at["b"])]),
        state=reads(stream, desk, at["c"]), stats=opened(stream, None),
    )  # fmt: skip
    batch = await desk.pop(1, queue=stream.queue)
    assert batch is not None
    for _ in range(3):
        await quick.run()
    assert [name for name in left(desk) if len(name) == 1] == ["b", "c"]
    assert await desk.outcomes(batch) == ["completed"]
    await quick.run()
    assert [name for name in left(desk) if len(name) == 1] == []


async def test_without_a_group_sealed_windows_keep_nothing(desk: Desk, pipeline: Pipeline) -> None:
    at = await old_messages(desk, "a", "b")
    stream = await define(desk)
    pipeline.seal(stream.id, stream.queue_id, minute("k", 1), state=reads(stream, desk, at["b"]))
    await desk.store.sweeper.run()
    assert [name for name in left(desk) if len(name) == 1] == []


async def test_retention_waits_no_longer_than_its_limit(desk: Desk) -> None:
    await old_messages(desk, "a")
    await define(desk)
    assert await Sweeper(desk.store.database, hold_seconds=30).run() == 1
    assert left(desk) == []


@pytest.mark.every_postgres
async def test_how_far_retention_is_held_back_is_shown(desk: Desk, pipeline: Pipeline) -> None:
    at = await old_messages(desk, "a", "b")
    stream = await define(desk)
    (state,) = await desk.store.streams.state()
    assert 35 < state["now"].timestamp() - state["held_since"].timestamp() < 60
    assert 95 < state["now"].timestamp() - state["unread_since"].timestamp() < 130
    await desk.push("c")
    ((txid, id_),) = desk.run("SELECT txid, id FROM queenspark.messages WHERE transaction_id = 'c'")
    pipeline.push(state=reads(stream, desk, (txid, id_)), stats=opened(stream, None))
    (state,) = await desk.store.streams.state([stream.id])
    assert state["held_since"] is None
    assert state["unread_since"] is None
    assert at["b"] < (txid, id_)


async def test_only_the_newest_late_and_dead_records_are_kept(
    desk: Desk, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.push("m")
    stream = await define(desk)
    monkeypatch.setattr("queenspark.store.sweeper._KEPT_RECORDS", 2)
    for n in range(4):
        record = {"stream": stream.id, "version": 1, "key": "k", "txid": n, "id": n}
        pipeline.batch += 1
        pipeline.push(late=[{**record, "time_us": 0, "closed_us": 0, "dropped": False}], dead=[record])
    await desk.store.sweeper.run()
    for table in ("stream_late", "stream_dead"):
        assert desk.run(f"SELECT txid FROM queenspark.{table} ORDER BY txid") == [(2,), (3,)]


async def test_windows_stay_as_long_as_their_stream_says(desk: Desk, pipeline: Pipeline) -> None:
    await desk.push("a")
    stream = await define(desk)
    pipeline.seal(stream.id, stream.queue_id, minute("a", 1), minute("a", 2), minute("b", 1))
    desk.age(100)
    assert await desk.store.sweeper.run() == 0, "off by default"
    await define(desk, window_retention_ms=200_000)
    assert await desk.store.sweeper.run() == 0
    redefined = await define(desk, window_retention_ms=50_001)
    assert (redefined.version, redefined.window_retention_ms) == (1, 50_001)
    queue = await desk.store.catalog.queue(stream.queue)
    assert queue is not None
    assert queue.retention_seconds == 51, "whole seconds, never earlier"
    assert await desk.store.sweeper.run() == 1, "the last window of each key stays"
    await define(desk)
    pipeline.seal(stream.id, stream.queue_id, minute("a", 3))
    desk.age(1000)
    assert await desk.store.sweeper.run() == 0, "off again"


SESSION = {"kind": "session", "gap_us": 60_000_000, "late": "drop"}


def late_record(stream: Stream, position: Position, **more: Any) -> dict[str, Any]:
    """A record that was dropped because it was late, as the engine reports it."""
    record = {"stream": stream.id, "version": 1, "key": "p", "txid": position[0], "id": position[1]}
    return {**record, "time_us": 0, "closed_us": 0, "dropped": True, **more}


async def dropped(desk: Desk, stream: Stream) -> set[Position]:
    return await desk.store.hydration.dropped(stream.id, 1, "p")


async def test_dropped_records_of_sessions_outlive_the_late_log(
    desk: Desk, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queenspark.store.sweeper._KEPT_RECORDS", 2)
    records = await old_messages(desk, *"abcd", retentionSeconds=0)
    stream = await define(desk, spec=SESSION)
    for position in records.values():
        pipeline.batch += 1
        pipeline.push(late=[late_record(stream, position)])
    await desk.store.sweeper.run()
    assert desk.run("SELECT count(*) FROM queenspark.stream_late") == [(2,)]
    assert await dropped(desk, stream) == set(records.values())


async def test_dropped_records_of_an_older_pipeline_outlive_the_late_log(
    desk: Desk, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipeline of an older version notes them in the late log only."""
    monkeypatch.setattr("queenspark.store.sweeper._KEPT_RECORDS", 2)
    records = await old_messages(desk, *"abcd", retentionSeconds=0)
    stream = await define(desk, spec=SESSION)
    for position in records.values():
        pipeline.batch += 1
        pipeline.push(late=[late_record(stream, position)])
    desk.run("DELETE FROM queenspark.stream_dropped")
    assert await dropped(desk, stream) == set(records.values())
    await desk.store.sweeper.run()
    assert await dropped(desk, stream) == set(records.values())


async def test_dropped_records_go_with_the_records_themselves(desk: Desk, pipeline: Pipeline) -> None:
    records = await old_messages(desk, "a", "b")
    await desk.push("young")
    ((txid, id_),) = desk.run("SELECT txid, id FROM queenspark.messages WHERE transaction_id = 'young'")
    stream = await define(desk, spec=SESSION)
    everything = [*records.values(), (txid, id_)]
    pipeline.push(late=[late_record(stream, position) for position in everything])
    desk.run("DELETE FROM queenspark.stream_late")
    sweeper = Sweeper(desk.store.database, hold_seconds=0)
    assert await sweeper.run() == 2
    await sweeper.run()
    assert await dropped(desk, stream) == {(txid, id_)}
    await desk.store.streams.delete(stream)
    assert desk.run("SELECT count(*) FROM queenspark.stream_dropped") == [(0,)]


async def test_dropped_records_of_a_stream_that_an_older_broker_deleted_go(
    desk: Desk, pipeline: Pipeline
) -> None:
    """Its delete knows nothing of them."""
    records = await old_messages(desk, "a", retentionSeconds=0)
    stream = await define(desk, spec=SESSION)
    pipeline.push(late=[late_record(stream, records["a"])])
    desk.run("DELETE FROM queenspark.streams")
    await desk.store.sweeper.run()
    assert desk.run("SELECT count(*) FROM queenspark.stream_dropped") == [(0,)]


async def test_windows_on_a_grid_need_no_list_of_dropped_records(desk: Desk, pipeline: Pipeline) -> None:
    records = await old_messages(desk, "a", retentionSeconds=0)
    stream = await define(desk)
    pipeline.push(late=[late_record(stream, records["a"])])
    assert desk.run("SELECT count(*) FROM queenspark.stream_dropped") == [(0,)]


@pytest.mark.parametrize("age", ["retention_seconds", "completed_retention_seconds"])
async def test_the_last_window_of_each_key_stays(desk: Desk, pipeline: Pipeline, age: str) -> None:
    """It determines where the key's count windows continue after a restart of the pipeline."""
    await desk.push("a")
    stream = await define(desk)
    windows = [minute("a", 1), minute("b", 1), minute("b", 2), minute("c", 1)]
    pipeline.seal(stream.id, stream.queue_id, *windows)
    while (batch := await desk.pop(queue=stream.queue)) is not None:
        await desk.ack(batch)
    desk.run(
        f"UPDATE queenspark.queues SET retention_enabled = true, {age} = 60 WHERE name LIKE 'windows:%%'"
    )
    desk.age(100)
    sweeper = Sweeper(desk.store.database, batch=2)
    assert await sweeper.run() == 1
    found = desk.run("SELECT window_end FROM queenspark.messages WHERE window_end IS NOT NULL ORDER BY id")
    assert [end.minute for (end,) in found] == [2, 3, 2]
