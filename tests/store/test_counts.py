"""Counts of the log: after any operation they become exact, and cost as much as the change."""

import asyncio
import random
from typing import Any

import pytest

from queenspark.store.dead_letters import Filter
from queenspark.store.page import Page
from queenspark.store.store import Store
from tests.store.desk import Desk

pytestmark = pytest.mark.anyio

TRUE_MESSAGES = """
    SELECT q.name, (SELECT count(*) FROM queenspark.messages m WHERE m.queue_id = q.id)
    FROM queenspark.queues q
"""
#: The delivered and unacked messages of a group, and every message ahead of it.
TRUE_LAG = """
    SELECT q.name, g.name, (
        SELECT coalesce(sum(cardinality(p.pending)), 0) FROM queenspark.places p WHERE p.group_id = g.id
    ) + (
        SELECT count(*) FROM queenspark.messages m
        LEFT JOIN queenspark.places p ON p.group_id = g.id AND p.partition_id = m.partition_id
        WHERE m.queue_id = g.queue_id AND (m.txid, m.id) > (
            coalesce(p.end_txid, g.start_txid), coalesce(p.end_id, g.start_id)))
    FROM queenspark.groups g JOIN queenspark.queues q ON q.id = g.queue_id
"""
COUNTED_MESSAGES = (
    "SELECT q.name, c.messages FROM queenspark.queues q JOIN queenspark.queue_counts c ON c.queue_id = q.id"
)
COUNTED_LAG = """
    SELECT q.name, g.name, c.lag FROM queenspark.groups g JOIN queenspark.queues q ON q.id = g.queue_id
    JOIN queenspark.group_counts c ON c.group_id = g.id
"""


async def count(store: Store) -> None:
    """Count until all is counted."""
    async with asyncio.timeout(30):
        while not await store.counts.run():
            pass


async def compare(desk: Desk) -> None:
    """Counts equal the content of the log."""
    await count(desk.store)
    with desk.connect() as connection:
        for true, counted in ((TRUE_MESSAGES, COUNTED_MESSAGES), (TRUE_LAG, COUNTED_LAG)):
            assert sorted(connection.execute(counted)) == sorted(connection.execute(true))


async def row_of(desk: Desk, group: str = "g") -> dict[str, Any]:
    """The group as listed."""
    rows, _ = await desk.store.groups.page(Page(), name=group)
    return rows[0]


async def test_counts_follow_every_operation(desk: Desk) -> None:
    await compare(desk)
    await desk.push(*[f"a{n}" for n in range(300)], partition="a")
    await desk.push(*[f"b{n}" for n in range(250)], partition="b")
    await compare(desk)
    batch = await desk.pop(120)
    assert batch is not None
    await compare(desk)
    await desk.ack(batch, status=["completed", "failed"] * 60)
    await compare(desk)
    await desk.popped(200, partition="b", group="other")
    await compare(desk)
    await desk.popped(500, group="other")
    await compare(desk)
    await desk.store.groups.seek("q", "other", "beginning", partition="b")
    await compare(desk)
    await desk.store.groups.seek("q", "other", "end")
    await compare(desk)
    await desk.store.groups.seek("q", "other", "beginning")
    await compare(desk)
    await desk.store.groups.delete("other", "q", keep_start=True)
    await compare(desk)
    await desk.store.groups.delete("other", "q")
    await compare(desk)
    await desk.store.queues.delete("q")
    await desk.store.sweeper.run()
    await compare(desk)


@pytest.mark.parametrize("seed", range(4))
async def test_counts_follow_any_order_of_work(desk: Desk, seed: int) -> None:
    """Batches are large, so that messages ahead of places are stored and not counted each time."""
    rng = random.Random(seed)
    number = 0
    for queue in ("q", "r"):
        await desk.configure(queue, retentionSeconds=3600)

    async def push() -> None:
        nonlocal number
        ids = [f"m{number + n}" for n in range(rng.randint(1, 400))]
        number += len(ids)
        await desk.push(*ids, queue=rng.choice("qr"), partition=rng.choice("abc"))

    async def pop() -> None:
        partition, group = rng.choice([None, None, "a", "b"]), rng.choice("gh")
        batch = await desk.pop(
            rng.randint(1, 500), group, rng.choice("qr"), partition=partition, partitions=2
        )
        if batch is not None and rng.random() < 0.9:
            statuses = rng.choices(["completed", "failed", "dlq"], [8, 1, 1], k=len(batch.messages))
            await desk.ack(batch, status=statuses, group=group)

    async def seek() -> None:
        to = rng.choice(["end", "beginning"])
        await desk.store.groups.seek(
            rng.choice("qr"), rng.choice("gh"), to, partition=rng.choice([None, "a"])
        )

    async def sweep() -> None:
        desk.run(
            "UPDATE queenspark.messages SET created_at = created_at - interval '2 hours' WHERE id IN"
            f" (SELECT id FROM queenspark.messages ORDER BY txid, id LIMIT {rng.randint(0, 300)}) RETURNING 1"
        )
        await desk.store.sweeper.run()

    async def delete() -> None:
        desk.run(f"DELETE FROM queenspark.messages WHERE mod(id, {rng.randint(2, 50)}) = 0 RETURNING 1")

    async def put_back() -> None:
        await desk.store.dead_letters.put_back(Filter(queue=rng.choice("qr")))

    async def restart() -> None:
        await desk.store.groups.delete(rng.choice("gh"), rng.choice("qr"), keep_start=rng.random() < 0.7)

    async def count_once() -> None:
        await desk.store.counts.run()

    work = [push, pop, seek, sweep, delete, put_back, restart, count_once]
    for step in rng.choices(work, [8, 12, 2, 2, 2, 1, 1, 6], k=120):
        await step()
        if rng.random() < 0.1:
            await compare(desk)
    await compare(desk)


async def test_counting_during_pushes_and_deletions_loses_nothing(desk: Desk) -> None:
    await count(desk.store)
    done = False

    async def push(name: str) -> None:
        for n in range(60):
            await desk.push(*[f"{name}{n}-{i}" for i in range(20)], partition=name)

    async def delete() -> None:
        while not done:
            await asyncio.to_thread(
                desk.run,
                "DELETE FROM queenspark.messages WHERE mod(id, 7) = 0 OR mod(id, 11) = 1 RETURNING 1",
            )

    async def keep_counting() -> None:
        while not done:
            await desk.store.counts.run()

    beside = [asyncio.create_task(work()) for work in (delete, keep_counting, keep_counting)]
    await asyncio.gather(*[push(name) for name in "abc"])
    done = True
    await asyncio.gather(*beside)
    await compare(desk)


async def test_a_message_above_the_horizon_is_counted_when_it_is_final(desk: Desk) -> None:
    await count(desk.store)
    await desk.push("a")
    with desk.connect() as slow:
        slow.execute("SELECT pg_current_xact_id()")
        await desk.push("b")
        await count(desk.store)
        slow.rollback()
    await compare(desk)


async def test_small_numbers_are_exact_at_once_and_large_ones_as_of_the_last_round(desk: Desk) -> None:
    await desk.push(*[f"a{n}" for n in range(3)])
    await desk.popped(1)
    (queue,), total = await desk.store.queues.page(Page())
    assert total == 1
    assert (queue["messages"], queue["partitions"], queue["pending"], queue["processing"]) == (3, 1, 2, 0)
    assert (await row_of(desk))["lag"] == 2
    await desk.push(*[f"b{n}" for n in range(1500)])
    await count(desk.store)
    await desk.push("c")
    (queue,), _ = await desk.store.queues.page(Page())
    assert queue["messages"] == 1504
    assert (await row_of(desk))["lag"] == 1502


async def test_counts_start_over_after_an_hour_without_counting(desk: Desk) -> None:
    """Deletions are not recorded then: records would pile up while only older versions run."""
    await desk.push(*[f"a{n}" for n in range(10)])
    await compare(desk)
    desk.run("UPDATE queenspark.counting SET counted_at = counted_at - interval '2 hours' RETURNING 1")
    desk.run("DELETE FROM queenspark.messages WHERE mod(id, 2) = 0 RETURNING 1")
    assert desk.run("SELECT 1 FROM queenspark.deleted_messages") == []
    assert await desk.store.counts.run() is False
    await compare(desk)


async def test_a_round_counts_no_more_than_its_budget(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queenspark.store.counts.BUDGET", 100)
    for queue in "qr":
        await desk.push(*[f"{queue}{n}" for n in range(250)], queue=queue)
    await desk.popped(1)
    await desk.store.counts.run()
    assert await desk.store.counts.run() is False
    counted = desk.run("SELECT coalesce(sum(messages), 0) FROM queenspark.queue_counts")
    assert counted == [(100,)]
    await compare(desk)


async def test_counts_are_of_one_broker_at_a_time(desk: Desk) -> None:
    await count(desk.store)
    with desk.connect() as other:
        other.execute("SELECT pg_advisory_xact_lock(8175003150218453619)")
        assert await desk.store.counts.run() is None
        other.rollback()
    assert await desk.store.counts.run(every=3600) is None
    assert await desk.store.counts.run() is True
