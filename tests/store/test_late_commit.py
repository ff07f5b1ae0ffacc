"""Messages whose transaction commits late: no reader may skip them, and no watermark may pass them."""

from datetime import datetime
from typing import Any

import psycopg
import pytest

from tests.store.desk import Desk, names

pytestmark = [pytest.mark.anyio, pytest.mark.every_postgres]

INSERT = """
    INSERT INTO queenspark.messages (txid, id, partition_id, created_at, queue_id, transaction_id, payload)
    SELECT current_txid(), nextval('queenspark.message_blocks') * 1000, p.id, clock_timestamp(),
           p.queue_id, %s, '1'
    FROM queenspark.partitions p WHERE p.name = %s RETURNING created_at
"""


def push_open(
    connection: psycopg.Connection[tuple[Any, ...]], transaction_id: str, partition: str = "p"
) -> datetime:
    """Push without committing; returns the time of creation."""
    row = connection.execute(INSERT, (transaction_id, partition)).fetchone()
    assert row is not None
    time: datetime = row[0]
    return time


async def test_a_pop_does_not_skip_a_message_that_commits_late(desk: Desk) -> None:
    await desk.push("first")
    with desk.connect() as late:
        push_open(late, "late")
        await desk.push("after")
        assert await desk.popped() == ["first"], "messages above an open push must wait"
        late.commit()
    assert await desk.popped() == ["late", "after"]


async def test_a_late_message_of_a_partition_that_the_group_never_saw_is_found(desk: Desk) -> None:
    await desk.push("x", partition="other")
    await desk.push("y", partition="p")
    assert sorted(await desk.popped(partitions=5)) == ["x", "y"]
    with desk.connect() as late:
        push_open(late, "late", "other")
        await desk.push("after", partition="p")
        assert await desk.popped(partitions=5) == []
        late.commit()
    assert sorted(await desk.popped(partitions=5)) == ["after", "late"]


async def test_a_push_that_rolls_back_leaves_no_hole(desk: Desk) -> None:
    await desk.push("first")
    with desk.connect() as late:
        push_open(late, "never")
        await desk.push("after")
        late.rollback()
    assert await desk.popped() == ["first", "after"]


async def test_without_the_horizon_the_late_message_would_be_lost(desk: Desk) -> None:
    """The naive reading, to show that the tests above can fail."""
    desk.run(
        "CREATE OR REPLACE FUNCTION horizon() RETURNS bigint LANGUAGE sql STABLE"
        " AS 'SELECT 9223372036854775807'"
    )
    await desk.push("first")
    with desk.connect() as late:
        push_open(late, "late")
        await desk.push("after")
        assert await desk.popped() == ["first", "after"]
        late.commit()
    assert await desk.popped() == [], "lost"


async def test_a_lease_that_ends_while_a_push_is_open_does_not_lose_it(desk: Desk) -> None:
    await desk.push("first")
    batch = await desk.pop()
    assert batch is not None
    with desk.connect() as late:
        push_open(late, "late")
        await desk.ack(batch)
        assert await desk.pop() is None
        late.commit()
    assert names(await desk.pop()) == ["late"]


async def test_safe_time_moves_while_nothing_is_pushed(desk: Desk) -> None:
    clock = desk.store.clock
    await clock.sample()
    first = await clock.safe_time()
    await clock.sample()
    second = await clock.safe_time()
    assert first is not None
    assert second is not None
    assert second > first


async def test_safe_time_does_not_pass_a_lone_open_push_on_an_idle_database(desk: Desk) -> None:
    await desk.push("first")
    clock = desk.store.clock
    await clock.sample()
    with desk.connect() as late:
        created = push_open(late, "late")
        for _ in range(3):
            await clock.sample()
            safe = await clock.safe_time()
            assert safe is not None
            assert safe <= created, "the open push was created before safe time, and is not visible"
        late.commit()
    await clock.sample()
    safe = await clock.safe_time()
    assert safe is not None
    assert safe > created


async def test_snapshot_xmax_would_overlook_the_lone_open_push(desk: Desk) -> None:
    """The naive reading: xmax is the last completed id + 1, and an open push may lie above it."""
    await desk.push("first")
    with desk.connect() as late:
        push_open(late, "late")
        (row,) = desk.run("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
        (open_id,) = late.execute("SELECT pg_current_xact_id()::text::bigint").fetchone() or (0,)
        assert row[0] <= open_id
        late.rollback()


async def test_a_reader_that_stopped_early_may_claim_only_its_own_safe_time(desk: Desk) -> None:
    clock = desk.store.clock
    await desk.push("a")
    ((txid,),) = desk.run("SELECT max(txid) FROM queenspark.messages")
    await clock.sample()
    await clock.sample()
    now = await clock.safe_time()
    early = await clock.safe_time(txid)
    assert now is not None
    assert early is None or early < now
    ((created,),) = desk.run("SELECT max(created_at) FROM queenspark.messages")
    assert early is None or early <= created


async def test_the_session_that_holds_back_the_horizon_is_named(desk: Desk) -> None:
    await desk.push("a")
    with desk.connect() as late:
        push_open(late, "late")
        holder = await desk.store.clock.holder()
        assert holder is not None
        assert holder["pid"] == late.info.backend_pid
        assert holder["state"] == "idle in transaction"
        late.rollback()
