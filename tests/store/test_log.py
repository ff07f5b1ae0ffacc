"""Reading the log in bulk: everything below the horizon, once, however the range is cut."""

import pickle
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import pairwise

import polars as pl
import pytest

from queenspark.store import log
from queenspark.store.errors import DatabaseUnavailable
from queenspark.store.log import LogReader
from queenspark.store.news import tell
from queenspark.store.position import BEGIN, Position
from queenspark.store.store import Store
from tests.store.desk import Desk, item
from tests.store.test_late_commit import push_open

pytestmark = [pytest.mark.anyio, pytest.mark.every_postgres]

LONG = 20.0


@pytest.fixture
def reader(database: str) -> Iterator[LogReader]:
    """A reader of the test's database."""
    with LogReader(database) as opened:
        yield opened


def read(
    reader: LogReader, queues: Sequence[str], after: Position, upto: Position, *, payload: bool = True
) -> pl.DataFrame:
    """A range of the log, sorted by position."""
    ids = list(reader.queues(queues).values())
    batches = list(reader.read(ids, after, upto, payload=payload))
    return pl.concat([pl.DataFrame(batch) for batch in batches]).sort("txid", "id")


def transactions(frame: pl.DataFrame) -> list[str]:
    return frame["transaction_id"].to_list()


async def test_messages_come_with_all_their_columns(desk: Desk, reader: LogReader) -> None:
    await desk.store.pusher.push([item("q", "a", "p", {"n": 1}), item("q", "b", "r", None)])
    ids = reader.queues(["q"])
    end = reader.end([ids["q"]], BEGIN)
    assert end is not None
    frame = read(reader, ["q"], BEGIN, end)
    assert frame.columns == [
        "txid", "id", "queue_id", "partition", "created_us", "transaction_id", "encrypted", "payload",
    ]  # fmt: skip
    assert transactions(frame) == ["a", "b"]
    assert frame["partition"].to_list() == ["p", "r"]
    assert frame["payload"].to_list() == ['{"n":1}', "null"]
    assert frame["encrypted"].to_list() == [False, False]
    assert frame["queue_id"].unique().to_list() == [ids["q"]]
    assert Position(*frame.row(-1)[:2]) == end
    ((created,),) = desk.run(
        "SELECT (extract(epoch FROM created_at) * 1000000)::bigint FROM queenspark.messages"
        " WHERE transaction_id = 'a'"
    )
    assert frame["created_us"].to_list()[0] == created


async def test_without_payload_only_columns_for_windows_are_read(desk: Desk, reader: LogReader) -> None:
    await desk.push("a")
    frame = read(reader, ["q"], BEGIN, reader.frontier(), payload=False)
    assert frame.columns == ["txid", "id", "queue_id", "partition", "created_us"]


async def test_the_end_of_an_empty_range_is_none(desk: Desk, reader: LogReader) -> None:
    await desk.push("a")
    ids = list(reader.queues(["q"]).values())
    end = reader.end(ids, BEGIN)
    assert end is not None
    assert reader.end(ids, end) is None
    assert reader.end([], BEGIN) is None


async def test_nothing_above_an_open_push_is_read(desk: Desk, reader: LogReader) -> None:
    await desk.push("first")
    ids = list(reader.queues(["q"]).values())
    with desk.connect() as late:
        push_open(late, "late")
        await desk.push("after")
        end = reader.end(ids, BEGIN)
        assert end is not None
        assert transactions(read(reader, ["q"], BEGIN, end)) == ["first"]
        late.commit()
    rest = reader.end(ids, end)
    assert rest is not None
    assert transactions(read(reader, ["q"], end, rest)) == ["late", "after"]


async def test_several_queues_are_one_range_with_one_limit(desk: Desk, reader: LogReader) -> None:
    for n in range(6):
        await desk.push(f"t{n}", queue="abc"[n % 3], partition="same")
    ids = list(reader.queues(["a", "b", "c"]).values())
    end = reader.end(ids, BEGIN, 4)
    assert end is not None
    assert transactions(read(reader, ["a", "b", "c"], BEGIN, end)) == ["t0", "t1", "t2", "t3"]
    last = reader.end(ids, end, 4)
    assert last is not None
    assert last == reader.end(ids, end)
    assert transactions(read(reader, ["a", "b", "c"], end, last)) == ["t4", "t5"]


@pytest.mark.parametrize("rows", [1, 3, 7, 20, 21])
async def test_cuts_lose_and_repeat_nothing(desk: Desk, reader: LogReader, rows: int) -> None:
    sent = [f"t{n:02}" for n in range(20)]
    for n, id_ in enumerate(sent):
        await desk.push(id_, queue="ab"[n % 2])
    ids = list(reader.queues(["a", "b"]).values())
    end = reader.end(ids, BEGIN)
    assert end is not None
    bounds = [BEGIN, *reader.cuts(ids, BEGIN, end, rows), end]
    parts = [read(reader, ["a", "b"], *pair) for pair in pairwise(bounds)]
    assert [id_ for part in parts for id_ in transactions(part)] == sent
    assert {len(part) for part in parts[:-1]} <= {rows}


@pytest.mark.parametrize("most_bytes", [1, 200, 100_000])
async def test_a_long_range_is_read_in_several_statements(
    desk: Desk, reader: LogReader, monkeypatch: pytest.MonkeyPatch, most_bytes: int
) -> None:
    monkeypatch.setattr(log, "_FIRST_ROWS", 2)
    monkeypatch.setattr(log, "_STATEMENT_BYTES", most_bytes)
    sent = [f"t{n}" for n in range(30)]
    await desk.push(*sent)
    assert transactions(read(reader, ["q"], BEGIN, reader.frontier())) == sent


async def test_a_new_generation_sorts_after_the_old_one(desk: Desk, reader: LogReader) -> None:
    await desk.push("old")
    ids = list(reader.queues(["q"]).values())
    before = reader.end(ids, BEGIN)
    assert before is not None
    desk.run("UPDATE queenspark.system SET generation = generation + 1")
    assert reader.frontier() > before
    await desk.push("new")
    after = reader.end(ids, before)
    assert after is not None
    assert after.txid >> 48 == 1
    assert transactions(read(reader, ["q"], before, after)) == ["new"]


async def test_the_frontier_is_between_past_and_future_messages(desk: Desk, reader: LogReader) -> None:
    await desk.push("before")
    frontier = reader.frontier()
    await desk.push("after")
    assert transactions(read(reader, ["q"], frontier, reader.frontier())) == ["after"]


async def test_the_earliest_message_is_the_first_that_is_left(desk: Desk, reader: LogReader) -> None:
    await desk.push("a", "b")
    (queue_id,) = reader.queues(["q"]).values()
    first = reader.earliest(queue_id)
    desk.run("DELETE FROM queenspark.messages WHERE transaction_id = 'a'")
    second = reader.earliest(queue_id)
    assert first is not None
    assert second is not None
    assert first < second
    desk.run("DELETE FROM queenspark.messages")
    assert reader.earliest(queue_id) is None


async def test_a_time_is_found_as_a_position(desk: Desk, reader: LogReader) -> None:
    await desk.push("a")
    await desk.push("b")
    (queue_id,) = reader.queues(["q"]).values()
    ((moment,),) = desk.run("SELECT created_at FROM queenspark.messages WHERE transaction_id = 'b'")
    at = reader.position_at(queue_id, moment)
    assert transactions(read(reader, ["q"], at, reader.frontier())) == ["b"]
    later = reader.position_at(queue_id, moment + timedelta(days=1))
    assert reader.end([queue_id], later) is None


async def test_safe_time_is_the_clock_in_microseconds(desk: Desk, reader: LogReader) -> None:
    assert reader.safe_time() is None
    await desk.store.clock.sample()
    expected = await desk.store.clock.safe_time()
    assert expected is not None
    found = reader.safe_time()
    assert found is not None
    assert abs(found - expected.timestamp() * 1_000_000) <= 1
    assert reader.safe_time(txid=1) is None


async def test_a_push_ends_the_wait(store: Store, reader: LogReader) -> None:
    assert reader.wait(0.01, {"q"}) is False
    await tell(store.database, '{"sender":"x","forget":["q"]}')
    assert reader.wait(0.05, {"q"}) is False, "news that are not a push"
    await tell(store.database, '{"sender":"x","wake":["other","q"]}')
    assert reader.wait(LONG, {"q"}) is True


async def test_pushes_to_other_queues_do_not_end_the_wait(store: Store, reader: LogReader) -> None:
    reader.wait(0.01, {"q"})
    for _ in range(50):
        await tell(store.database, '{"sender":"x","wake":["other"]}')
    assert reader.wait(0.3, {"q"}) is False
    await tell(store.database, '{"sender":"x","wake":["q"]}')
    assert reader.wait(LONG, {"q"}) is True


async def test_the_next_end_waits_for_an_older_push_to_finish(desk: Desk, reader: LogReader) -> None:
    await desk.push("first")
    queues = reader.queues(["q"])
    end = reader.end(list(queues.values()), BEGIN)
    assert end is not None
    with desk.connect() as late:
        push_open(late, "late")
        await desk.push("after")
        assert reader.next_end(queues, end, seconds=0.02) is None
        timer = threading.Timer(0.1, late.commit)
        timer.start()
        began = time.monotonic()
        assert reader.next_end(queues, end, seconds=LONG) is not None
        timer.join()
    assert time.monotonic() - began < LONG / 2


async def test_broken_connections_are_replaced(desk: Desk, reader: LogReader) -> None:
    await desk.push("a")
    assert transactions(read(reader, ["q"], BEGIN, reader.frontier())) == ["a"]
    desk.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'queenspark spark'"
    )
    assert transactions(read(reader, ["q"], BEGIN, reader.frontier())) == ["a"]


async def test_a_reader_travels_as_its_address(desk: Desk, reader: LogReader) -> None:
    await desk.push("a")
    assert reader.frontier() > BEGIN
    with pickle.loads(pickle.dumps(reader)) as copy:
        assert transactions(read(copy, ["q"], BEGIN, copy.frontier())) == ["a"]


def test_a_database_that_is_not_there_is_one_of_our_errors() -> None:
    with LogReader("postgresql://127.0.0.1:1/none") as reader, pytest.raises(DatabaseUnavailable):
        reader.frontier()


@pytest.mark.parametrize("payload", [True, False])
async def test_messages_of_a_deleted_partition_are_left_out(
    desk: Desk, reader: LogReader, payload: bool
) -> None:
    await desk.push("a1", "a2", partition="a")
    await desk.push("b1", partition="b")
    await desk.push("a3", partition="a")
    desk.run("DELETE FROM queenspark.partitions WHERE name = 'b'")
    frame = read(reader, ["q"], BEGIN, reader.frontier(), payload=payload)
    assert frame["partition"].to_list() == ["a", "a", "a"]
    if payload:
        assert transactions(frame) == ["a1", "a2", "a3"]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
async def test_a_scan_reads_everything_once_however_much_a_statement_reads(
    desk: Desk, reader: LogReader, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    for number in range(4):
        await desk.push(f"q{number}a", f"q{number}b", partition=f"p{number}")
        await desk.push(f"r{number}", queue="r", partition="p0")
    everything = read(reader, ["q", "r"], BEGIN, reader.frontier())
    monkeypatch.setattr(log, "_STATEMENT_ROWS", limit)
    columns = ["txid", "id", "queue_id", "partition", "created_us"]
    scanned = read(reader, ["q", "r"], BEGIN, reader.frontier(), payload=False)
    assert scanned.cast({"partition": pl.String}).rows() == everything.select(columns).rows()
