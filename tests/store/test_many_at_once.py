"""One message under each of many leases, and acks of many places: all at once, as if one by one."""

import asyncio
from uuid import uuid4

import pytest

from queenspark.store.dead_letters import Filter
from queenspark.store.delivery import Ack
from tests.store.desk import Desk, item, names

pytestmark = [pytest.mark.anyio, pytest.mark.every_postgres]


async def test_a_completed_place_continues_with_the_next_messages(desk: Desk) -> None:
    await desk.push("a1", "a2", partition="a")
    await desk.push("b1", partition="b")
    for expected in (["a1", "b1"], ["a2"], []):
        batches = await desk.pop_each(3)
        assert [name for batch in batches for name in names(batch)] == expected
        assert len({batch.lease_id for batch in batches}) == len(batches)
        for batch in batches:
            assert await desk.outcomes(batch) == ["completed"]


async def test_released_and_failed_messages_are_delivered_first_and_alone(desk: Desk) -> None:
    await desk.configure(retryDelay=0)
    await desk.push("a1", "a2", partition="a")
    await desk.push("b1", "b2", partition="b")
    first, second = await desk.pop_each(2)
    assert await desk.outcomes(first, status="dlq") == ["dead"]
    assert await desk.outcomes(second, status="failed") == ["retry"]
    await desk.store.dead_letters.put_back(Filter(queue="q", group="g"))
    for expected in (["a1", "b1"], ["a2", "b2"], []):
        batches = await desk.pop_each(3)
        assert sorted(name for batch in batches for name in names(batch)) == expected
        for batch in batches:
            assert await desk.outcomes(batch) == ["completed"]
    assert desk.run("SELECT count(*) FROM queenspark.attempts") == [(0,)]


async def test_acks_of_several_places_are_independent(desk: Desk) -> None:
    await desk.configure(retryDelay=0)
    for partition in "abcd":
        await desk.push(f"{partition}1", f"{partition}2", partition=partition)
    batches = await desk.pop_each(4)
    statuses = ["completed", "failed", "completed", "completed"]
    leases = [batches[0].lease_id, batches[1].lease_id, uuid4(), batches[3].lease_id]
    acks = [
        Ack(batch.messages[0].partition_id, names(batch)[0], "g", lease, status, None)
        for batch, lease, status in zip(batches, leases, statuses, strict=True)
    ]
    found = await desk.store.deliverer.ack(acks)
    assert [each.outcome for each in found] == ["completed", "retry", "stale", "completed"]
    assert [each.more for each in found] == [True, True, False, True]
    desk.expire_leases()
    batches = await desk.pop_each(4)
    assert sorted(name for batch in batches for name in names(batch)) == ["a2", "b1", "c1", "d2"]


async def test_acks_lock_their_places_in_one_order_for_any_status(desk: Desk) -> None:
    """Locking in different orders would deadlock."""
    await desk.push("a1", partition="a")
    await desk.push("b1", partition="b")
    first, second = await desk.pop_each(2)
    ids = sorted(batch.messages[0].partition_id for batch in (first, second))
    assert first.messages[0].partition_id == ids[0]
    lock = "SELECT 1 FROM queenspark.places WHERE partition_id = %s FOR UPDATE"
    acks = [
        Ack(batch.messages[0].partition_id, names(batch)[0], "g", batch.lease_id, status, None)
        for batch, status in ((first, "failed"), (second, "completed"))
    ]
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    with desk.connect() as one, desk.connect() as other:
        one.execute(lock, (ids[0],))
        acked = asyncio.create_task(desk.store.deliverer.ack(acks))
        for _ in range(500):
            if desk.run(waiting) != [(0,)]:
                break
            await asyncio.sleep(0.02)
        other.execute(f"{lock} NOWAIT", (ids[1],))  # the one that waits does not hold it
    assert [each.outcome for each in await acked] == ["retry", "completed"]


async def test_very_many_places_are_acked_at_once(desk: Desk) -> None:
    count = 3000
    items = [item("q", f"m{n}", f"p{n}") for n in range(count)]
    await desk.store.pusher.push(items)
    batches = [batch for _ in range(3) for batch in await desk.pop_each(1000)]
    assert len(batches) == count
    acks = [
        Ack(batch.messages[0].partition_id, names(batch)[0], "g", batch.lease_id, "completed", None)
        for batch in batches
    ]
    assert {each.outcome for each in await desk.store.deliverer.ack(acks)} == {"completed"}
    assert await desk.pop_each(1) == []
