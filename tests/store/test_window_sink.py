"""The window sink: every window once, through all retries, and nothing from a former leader."""

import json
import time
from itertools import count
from typing import Any

import polars as pl
import psycopg
import pytest

from queenspark.store import window_sink
from queenspark.store.definitions import window_queue
from queenspark.store.errors import DatabaseUnavailable, LostLeadership, Refused
from queenspark.store.log_writer import LogWriter
from queenspark.store.pipeline import PipelineStore
from queenspark.store.window_sink import Bucket
from tests.store.desk import Desk
from tests.streams.sealing import MINUTE, Pipeline, Sealed, minute

pytestmark = [pytest.mark.anyio, pytest.mark.every_postgres]

QUEUE = window_queue("ns", "s")


@pytest.fixture
def queue_id(desk: Desk) -> int:
    """A window queue."""
    return int(desk.run("INSERT INTO queenspark.queues (name) VALUES (%s) RETURNING id", QUEUE)[0][0])


@pytest.fixture
def pipeline(desk: Desk) -> Any:
    """A pipeline whose sink is closed afterwards."""
    pipeline = Pipeline(desk.store.database.url)
    yield pipeline
    pipeline.sink.close()


def windows(desk: Desk) -> list[tuple[str, str]]:
    """Partition and transaction id of every message, in log order."""
    found = desk.run(
        "SELECT t.name, m.transaction_id FROM queenspark.messages m"
        " JOIN queenspark.partitions t ON t.id = m.partition_id ORDER BY m.txid, m.id"
    )
    return [(key, name) for key, name in found]


async def test_windows_go_into_the_log_in_row_order(desk: Desk, queue_id: int, pipeline: Pipeline) -> None:
    rows = [minute("b", 2), minute("a", 1), minute("b", 1), minute("a", 2)]
    assert pipeline.seal(7, queue_id, *rows) == 4
    assert windows(desk) == [
        ("b", "7:b:120000:180000:r1"), ("a", "7:a:60000:120000:r1"), ("b", "7:b:60000:120000:r1"),
        ("a", "7:a:120000:180000:r1"),
    ]  # fmt: skip


async def test_a_window_message_describes_its_content(desk: Desk, queue_id: int, pipeline: Pipeline) -> None:
    key = 'ü"\\,\n\t\\.'
    sealed = Sealed(
        key, -1, MINUTE + 1, [(3, (5, 6), (7, 8)), (4, (1, 2), (3, 4))], 9, 2, 3, ["x", "y"], ":5-6"
    )
    pipeline.seal(7, queue_id, sealed)
    ((payload, end, encrypted),) = desk.run(
        "SELECT payload, window_end, encrypted FROM queenspark.messages WHERE queue_id = %s", queue_id
    )
    assert json.loads(payload) == {
        "id": f"7:{key}:-1:60000:v3:5-6", "stream": 7, "version": 3, "key": key, "start": -1,
        "end": MINUTE + 1, "count": 9, "revision": 2, "sources": [[3, 5, 6, 7, 8], [4, 1, 2, 3, 4]],
        "replaces": ["x", "y"],
    }  # fmt: skip
    assert end.timestamp() == 60.000001
    assert not encrypted


async def test_a_batch_that_is_pushed_again_changes_nothing(
    desk: Desk, queue_id: int, pipeline: Pipeline
) -> None:
    stats = [{"stream": 7, "version": 1, "records": 5}]
    desk.run(
        "INSERT INTO queenspark.streams (namespace, name, queue_id, partitioned, lease_timeout_ms, version)"
        " OVERRIDING SYSTEM VALUE VALUES ('ns', 's', %s, true, 1, 1)",
        queue_id,
    )
    stats[0]["stream"] = desk.run("SELECT id FROM queenspark.streams")[0][0]
    assert pipeline.seal(7, queue_id, minute("a", 1), batch=4, stats=stats, state='{"next_close": 5}') == 1
    before = windows(desk)
    assert pipeline.seal(7, queue_id, minute("a", 1), batch=4, stats=stats) == 0
    assert pipeline.seal(7, queue_id, minute("a", 9), batch=3, stats=stats) == 0
    assert windows(desk) == before
    assert desk.run("SELECT records FROM queenspark.stream_stats") == [(5,)]
    assert desk.run("SELECT batch, next_close FROM queenspark.progress") == [(4, 5)]
    assert pipeline.seal(7, queue_id, minute("a", 2), batch=5, stats=stats) == 1
    assert desk.run("SELECT records FROM queenspark.stream_stats") == [(10,)]


async def test_each_bucket_has_its_own_progress(desk: Desk, queue_id: int, pipeline: Pipeline) -> None:
    assert pipeline.seal(7, queue_id, minute("a", 1), batch=1, bucket=0, buckets=2) == 1
    assert pipeline.seal(7, queue_id, minute("b", 1), batch=1, bucket=1, buckets=2) == 1
    # Another number of buckets is another way to cut the keys: nothing can be told from the old rows.
    assert pipeline.seal(7, queue_id, minute("c", 1), batch=1, bucket=0, buckets=4) == 1
    assert len(windows(desk)) == 3


async def test_a_former_leader_cannot_write(desk: Desk, queue_id: int, pipeline: Pipeline) -> None:
    desk.run("UPDATE queenspark.pipeline SET epoch = 1")
    with pytest.raises(LostLeadership):
        pipeline.seal(7, queue_id, minute("a", 1))
    assert windows(desk) == []
    pipeline.epoch = 1
    assert pipeline.seal(7, queue_id, minute("a", 1)) == 1


async def test_a_checkpoint_that_is_ahead_of_the_database_is_refused(
    desk: Desk, queue_id: int, pipeline: Pipeline
) -> None:
    """After a restore batches are missing that the checkpoint knows, and with them messages."""
    pipeline.seal(7, queue_id, minute("a", 1), batch=1)
    with pytest.raises(Refused, match="delete their checkpoint"):
        pipeline.seal(7, queue_id, minute("a", 3), batch=3)
    assert len(windows(desk)) == 1
    pipeline.run = "another"
    assert pipeline.seal(7, queue_id, minute("a", 3), batch=3) == 1, "nothing is known about a new run"


async def test_a_window_that_came_back_gets_the_next_revision(
    desk: Desk, queue_id: int, pipeline: Pipeline
) -> None:
    pipeline.seal(7, queue_id, minute("a", 1, count=3), minute("a", 1, count=4, revision=2))
    assert pipeline.seal(7, queue_id, minute("a", 1, count=1), minute("b", 1)) == 2
    assert [name for _, name in windows(desk)] == [
        "7:a:60000:120000:r1", "7:a:60000:120000:r2", "7:a:60000:120000:r3", "7:b:60000:120000:r1",
    ]  # fmt: skip
    payloads = desk.run("SELECT payload FROM queenspark.messages ORDER BY txid, id")
    assert [(json.loads(text)["revision"], json.loads(text)["count"]) for (text,) in payloads] == [
        (1, 3), (2, 4), (3, 1), (1, 1),
    ]  # fmt: skip


async def test_one_batch_may_bring_a_window_twice(desk: Desk, queue_id: int, pipeline: Pipeline) -> None:
    assert pipeline.seal(7, queue_id, minute("a", 1, count=3), minute("a", 1, count=2)) == 2
    assert [name for _, name in windows(desk)] == ["7:a:60000:120000:r1", "7:a:60000:120000:r2"]


async def test_a_window_that_is_there_already_is_not_pushed_again(
    desk: Desk, queue_id: int, pipeline: Pipeline
) -> None:
    rows = [minute("a", 1, count=3), minute("a", 2)]
    pipeline.seal(7, queue_id, *rows)
    assert pipeline.seal(7, queue_id, *rows, minute("a", 3)) == 1
    assert len(windows(desk)) == 3


async def test_a_restarted_run_skips_output_of_the_previous_run(
    desk: Desk, queue_id: int, pipeline: Pipeline
) -> None:
    desk.run(
        "INSERT INTO queenspark.definitions (stream_id, version, body) VALUES (7, 1, '{}'), (7, 2, '{}')"
    )
    behind = json.dumps({"seq": 2, "behind": {"7:2": [0, 0, 0]}})
    pipeline.seal(7, queue_id, minute("a", 1), batch=9, state=behind)
    desk.run("DELETE FROM queenspark.messages")
    pipeline.run = "second"
    again = [minute("a", 1), minute("a", 1, version=2)]
    assert pipeline.seal(7, queue_id, *again, batch=5) == 1
    assert pipeline.seal(7, queue_id, minute("a", 2), batch=10) == 1
    assert [name for _, name in windows(desk)] == ["7:a:60000:120000:v2:r1", "7:a:120000:180000:r1"]


OLD_STATE = {  # as a version that knew no columns for it wrote it
    "run": "old", "n": 9, "txid": 70, "id": 71, "tick": 72, "seq": 2, "behind": {"7:2": [10, 11, 12]},
    "again": False, "next_close": 99, "records": 3, "seconds": 0.25,
}  # fmt: skip


def older_pipeline(desk: Desk, bucket: int = 0, **more: Any) -> None:
    """Progress as a pipeline of an older version writes it."""
    desk.run(
        "INSERT INTO queenspark.progress (bucket, buckets, epoch, batch, state) VALUES (%s, 1, 0, 9, %s)",
        bucket,
        json.dumps({**OLD_STATE, **more}),
    )


async def test_a_pipeline_goes_on_with_the_checkpoint_of_an_older_version(
    desk: Desk, queue_id: int, pipeline: Pipeline
) -> None:
    older_pipeline(desk)
    pipeline.run = "old"
    here = json.dumps({"txid": 80, "id": 81, "tick": 82})
    assert pipeline.seal(7, queue_id, minute("a", 1), batch=9, state=here) == 0
    assert pipeline.seal(7, queue_id, minute("a", 2), batch=10, state=here) == 1
    assert desk.run("SELECT batch, run, txid, id, tick, behind FROM queenspark.progress") == [
        (10, "old", 80, 81, 82, {})
    ]


async def test_a_restarted_run_skips_output_of_an_older_release(
    desk: Desk, queue_id: int, pipeline: Pipeline
) -> None:
    desk.run(
        "INSERT INTO queenspark.definitions (stream_id, version, body) VALUES (7, 1, '{}'), (7, 2, '{}')"
    )
    older_pipeline(desk)
    here = json.dumps({"txid": 70, "id": 71, "tick": 72})
    assert pipeline.seal(7, queue_id, minute("a", 1), minute("a", 1, version=2), state=here) == 1
    assert [name for _, name in windows(desk)] == ["7:a:60000:120000:v2:r1"]


async def test_an_older_version_can_take_over_again(desk: Desk, queue_id: int, pipeline: Pipeline) -> None:
    """It reads these keys of the state, and all of them are there."""
    pipeline.seal(7, queue_id, minute("a", 1), batch=4)
    ((state,),) = desk.run("SELECT state FROM queenspark.progress")
    assert {name: state[name] for name in ("run", "n", "txid", "id", "tick", "seq", "behind")} == {
        "run": "first", "n": 4, "txid": 0, "id": 0, "tick": 4, "seq": 0, "behind": {},
    }  # fmt: skip


async def test_the_source_is_told_how_far_buckets_of_any_version_are(desk: Desk) -> None:
    older_pipeline(desk)
    older_pipeline(desk, bucket=1, next_close=None)
    with PipelineStore(desk.store.database.url) as store:
        assert store.news("old").next_close == 99
        assert store.news("old").floors == []
        assert store.news("new").next_close is None
        assert store.news("new").floors == [(70, 71, 72)]
    (bucket, _) = await desk.store.streams.buckets()
    assert (bucket["batch_records"], bucket["batch_seconds"]) == (3, 0.25)


async def test_a_deleted_stream_gets_nothing(desk: Desk, queue_id: int, pipeline: Pipeline) -> None:
    pipeline.seal(7, queue_id, minute("a", 1))
    await desk.store.queues.delete(QUEUE)
    assert pipeline.seal(7, queue_id, minute("a", 2)) == 0
    stats = [{"stream": 7, "version": 1, "records": 5}]
    pipeline.seal(7, queue_id, minute("a", 3), stats=stats)
    assert desk.run("SELECT count(*) FROM queenspark.stream_stats") == [(0,)]


async def test_partitions_of_a_failed_push_are_not_remembered(
    desk: Desk, queue_id: int, pipeline: Pipeline
) -> None:
    pipeline.batch = 1
    with pytest.raises(psycopg.Error):
        pipeline.seal(7, queue_id, minute("a", 1), stats=[{"stream": 2**40, "version": 1}])
    assert pipeline.seal(7, queue_id, minute("a", 1)) == 1
    assert windows(desk) == [("a", "7:a:60000:120000:r1")]


async def test_a_lost_connection_is_opened_again(desk: Desk, queue_id: int, pipeline: Pipeline) -> None:
    pipeline.seal(7, queue_id, minute("a", 1))
    desk.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'queenspark window sink' AND datname = current_database()"
    )
    with pytest.raises(DatabaseUnavailable):
        pipeline.seal(7, queue_id, minute("a", 2), batch=2)
    assert pipeline.seal(7, queue_id, minute("a", 2), batch=2) == 1


async def test_late_and_dead_records_and_stats_are_noted(
    desk: Desk, queue_id: int, pipeline: Pipeline
) -> None:
    record = {"stream": 7, "version": 1, "key": "a", "txid": 1, "id": 2}
    pipeline.seal(
        7, queue_id, late=[{**record, "time_us": 3, "closed_us": 4, "dropped": True}], dead=[record]
    )
    assert desk.run(
        "SELECT stream_id, key, txid, id, time_us, closed_us, dropped FROM queenspark.stream_late"
    ) == [(7, "a", 1, 2, 3, 4, True)]
    assert desk.run("SELECT stream_id, version, key, txid, id FROM queenspark.stream_dead") == [
        (7, 1, "a", 1, 2)
    ]


async def test_a_parked_listener_hears_of_it(desk: Desk, queue_id: int, pipeline: Pipeline) -> None:
    with psycopg.connect(desk.store.database.url, autocommit=True) as connection:
        connection.execute("LISTEN queenspark")
        pipeline.seal(7, queue_id, minute("a", 1))
        (heard,) = connection.notifies(timeout=5, stop_after=1)
    assert json.loads(heard.payload)["wake"] == [QUEUE]


async def test_many_windows_are_quick(desk: Desk, queue_id: int, pipeline: Pipeline) -> None:
    many = 20_000
    rows = [minute(f"k{n % 2000}", n // 2000, sources=[(1, (n, n), (n, n))]) for n in range(many)]
    began = time.monotonic()
    assert pipeline.seal(7, queue_id, *rows) == many
    assert time.monotonic() - began < 20
    ids = pl.Series([row[0] for row in desk.run("SELECT id FROM queenspark.messages ORDER BY txid, id")])
    assert ids.is_sorted()
    assert ids.n_unique() == many


@pytest.mark.parametrize("kind", ["windows", "rows"])
async def test_a_large_batch_is_pushed_in_parts_and_each_of_them_once(
    desk: Desk, queue_id: int, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Also when a part is consumed and removed before the batch is run again."""
    monkeypatch.setattr(window_sink, "_CHUNK_ROWS", 2)
    monkeypatch.setattr(window_sink, "_CHUNK_WINDOWS", 2)

    def push(numbers: range, batch: int) -> int:
        if kind == "windows":
            # The engine gives keys in any order, but the windows of a key in theirs.
            some = [minute(f"k{number % 2}", number) for number in numbers]
            some.sort(key=lambda window: window.key, reverse=next(runs) % 2 == 1)
            return pipeline.seal(7, queue_id, *some, batch=batch)
        rows = [
            {"stream": 7, "version": 1, "queue_id": queue_id, "key": f"k{number % 2}",
             "transaction_id": f"7:1:{number}", "payload": "{}", "headers": "{}"}
            for number in numbers
        ]  # fmt: skip
        pipeline.batch = batch
        return pipeline.push(rows=rows)

    runs = count()
    push(range(1, 2), 1)
    calls = 0

    def failing(write: Any) -> Any:
        def third(self: Any, *args: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == 3:
                raise RuntimeError("no such luck")
            return write(self, *args)

        return third

    with monkeypatch.context() as patch:
        patch.setattr(LogWriter, kind, failing(getattr(LogWriter, kind)))
        patch.setattr(Bucket, "push_rows", failing(Bucket.push_rows))
        with pytest.raises(RuntimeError):
            push(range(2, 7), 2)
    before = windows(desk)
    assert len(before) == 5
    desk.run("DELETE FROM queenspark.messages WHERE transaction_id = %s", before[1][1])
    assert push(range(2, 7), 2) == 1
    assert push(range(2, 7), 2) == 0
    assert len(windows(desk)) == 5
    assert before[1] not in windows(desk)


def some_rows(queue_id: int, count: int) -> list[dict[str, Any]]:
    """Rows of one job."""
    return [
        {"stream": 7, "version": 1, "queue_id": queue_id, "key": "k", "transaction_id": f"7:1:{number}",
         "payload": "{}", "headers": None}
        for number in range(count)
    ]  # fmt: skip


@pytest.mark.parametrize("job", [None, (7, 1)], ids=["streams query", "own query"])
async def test_a_part_of_rows_is_a_single_statement(
    desk: Desk,
    queue_id: int,
    pipeline: Pipeline,
    monkeypatch: pytest.MonkeyPatch,
    job: tuple[int, int] | None,
) -> None:
    """A transaction that waited for its client would hold the horizon back."""
    monkeypatch.setattr(window_sink, "_CHUNK_ROWS", 2)
    in_transactions = []
    write = LogWriter.rows

    def recorded(self: LogWriter, connection: Any, rows: pl.DataFrame) -> Any:
        in_transactions.append(rows.height)
        return write(self, connection, rows)

    pipeline.batch = 1
    pipeline.push(rows=[], job=job)
    monkeypatch.setattr(LogWriter, "rows", recorded)
    pipeline.batch = 2
    assert pipeline.push(rows=some_rows(queue_id, 5), job=job) == 5
    assert in_transactions == [1], "the last one, together with the progress"
    assert pipeline.push(rows=some_rows(queue_id, 5), job=job) == 0
    assert len(windows(desk)) == 5


async def test_a_leader_deposed_between_two_parts_writes_no_more(
    desk: Desk, queue_id: int, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window_sink, "_CHUNK_ROWS", 2)
    pipeline.batch = 1
    pipeline.push()
    push_rows = Bucket.push_rows

    def deposed(self: Bucket, *args: Any) -> Any:
        found = push_rows(self, *args)
        desk.run("UPDATE queenspark.pipeline SET epoch = 1")
        return found

    monkeypatch.setattr(Bucket, "push_rows", deposed)
    pipeline.batch = 2
    with pytest.raises(LostLeadership):
        pipeline.push(rows=some_rows(queue_id, 7))
    assert len(windows(desk)) == 2


async def test_a_pushed_batch_whose_rows_are_gone_is_not_pushed_again(
    desk: Desk, queue_id: int, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retention may remove rows before Spark repeats the batch; the next batch is then complete as well."""
    monkeypatch.setattr(window_sink, "_CHUNK_ROWS", 2)
    pipeline.batch = 1
    pipeline.push()
    pipeline.batch = 2
    assert pipeline.push(rows=some_rows(queue_id, 5)) == 5
    desk.run("DELETE FROM queenspark.messages")
    assert pipeline.push(rows=some_rows(queue_id, 5)) == 0
    assert windows(desk) == []
    pipeline.batch = 3
    assert pipeline.push(rows=some_rows(queue_id, 9)[5:]) == 4
    assert len(windows(desk)) == 4


async def test_a_large_batch_of_a_checkpoint_ahead_of_the_database_writes_nothing(
    desk: Desk, queue_id: int, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window_sink, "_CHUNK_ROWS", 2)
    pipeline.batch = 1
    pipeline.push()
    pipeline.batch = 3
    with pytest.raises(Refused, match="delete their checkpoint"):
        pipeline.push(rows=some_rows(queue_id, 5))
    assert windows(desk) == []


async def test_rows_of_a_dropped_job_do_not_move_those_of_others(
    desk: Desk, queue_id: int, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are in the same part; the dropped job's partition does not exist yet."""
    monkeypatch.setattr(window_sink, "_CHUNK_ROWS", 4)
    pipeline.batch = 1
    pipeline.push()
    gone = [
        {**row, "queue_id": queue_id + 1, "transaction_id": f"8:{n}"} for n, row in enumerate(some_rows(0, 3))
    ]
    rows = [{**row, "key": f"k{number}"} for number, row in enumerate(some_rows(queue_id, 6))]
    pipeline.batch = 2
    assert pipeline.push(rows=[*gone[:2], *rows, gone[2]]) == 6
    assert windows(desk) == [(f"k{number}", f"7:1:{number}") for number in range(6)]


async def test_parts_of_another_size_push_everything_once(
    desk: Desk, queue_id: int, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version that cuts batches otherwise runs the batch again."""
    rows = [minute("a", number) for number in range(2, 9)]
    pipeline.seal(7, queue_id, minute("a", 1))
    write = LogWriter.windows
    calls = 0

    def failing(self: LogWriter, *args: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise RuntimeError("no such luck")
        return write(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(window_sink, "_CHUNK_WINDOWS", 3)
        patch.setattr(LogWriter, "windows", failing)
        with pytest.raises(RuntimeError):
            pipeline.seal(7, queue_id, *rows)
    monkeypatch.setattr(window_sink, "_CHUNK_WINDOWS", 2)
    assert pipeline.seal(7, queue_id, *rows, batch=pipeline.batch) == 4
    assert windows(desk) == [
        ("a", f"7:a:{number * 60_000}:{(number + 1) * 60_000}:r1") for number in range(1, 9)
    ]


async def test_rows_of_a_large_batch_are_stored_unchanged(
    desk: Desk, queue_id: int, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Quotes, commas, line ends, and no headers at all, through every way of writing."""
    monkeypatch.setattr(window_sink, "_CHUNK_ROWS", 2)
    pipeline.push(rows=[])
    odd = ['a"b', "a,b", "a\nb", "ü\\N", "", "\\."]
    rows = [
        {"stream": 7, "version": 1, "queue_id": queue_id, "key": f"k{text}", "transaction_id": f"7:1:{text}",
         "payload": f'{{"x":"{number}, ""}}', "headers": None if number % 2 else '{"h":"1"}'}
        for number, text in enumerate(odd)
    ]  # fmt: skip
    pipeline.batch += 1
    assert pipeline.push(rows=rows) == len(rows)
    found = desk.run(
        "SELECT p.name, m.transaction_id, m.payload, m.headers FROM queenspark.messages m"
        " JOIN queenspark.partitions p ON p.id = m.partition_id"
    )
    assert sorted(map(str, found)) == sorted(
        str((row["key"], row["transaction_id"], row["payload"], row["headers"])) for row in rows
    )
