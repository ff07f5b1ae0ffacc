"""Retention: removable and protected messages."""

import pytest

from tests.store.desk import Desk

pytestmark = pytest.mark.anyio


def left(desk: Desk) -> list[str]:
    """The messages of the log."""
    return [row[0] for row in desk.run("SELECT transaction_id FROM queenspark.messages ORDER BY txid, id")]


async def test_nothing_goes_by_default(desk: Desk) -> None:
    await desk.push("a")
    desk.age(10_000_000)
    await desk.popped()
    assert await desk.store.sweeper.run() == 0
    assert left(desk) == ["a"]


async def test_old_messages_go(desk: Desk) -> None:
    await desk.configure(retentionSeconds=60)
    await desk.push("old")
    desk.age(61)
    await desk.push("young")
    assert await desk.store.sweeper.run() == 1
    assert left(desk) == ["young"]


async def test_switched_off_retention_keeps_everything(desk: Desk) -> None:
    await desk.configure(retentionSeconds=60, retentionEnabled=False)
    await desk.push("old")
    desk.age(61)
    assert await desk.store.sweeper.run() == 0


async def test_expired_messages_go(desk: Desk) -> None:
    await desk.configure(ttl=60)
    await desk.push("old")
    desk.age(61)
    assert await desk.store.sweeper.run() == 1


@pytest.mark.every_postgres
async def test_completed_messages_are_removed_when_every_group_has_acked(desk: Desk) -> None:
    await desk.configure(completedRetentionSeconds=10)
    await desk.push("a", "b", "c")
    desk.age(11)
    assert await desk.popped(1, group="one") == ["a"]
    assert await desk.popped(3, group="two") == ["a", "b", "c"]
    assert await desk.store.sweeper.run() == 1
    assert left(desk) == ["b", "c"]
    assert await desk.popped(group="one") == ["b", "c"]
    await desk.store.sweeper.run()
    await desk.store.sweeper.run()
    assert left(desk) == []


async def test_messages_without_any_group_are_not_completed(desk: Desk) -> None:
    await desk.configure(completedRetentionSeconds=1)
    await desk.push("a")
    desk.age(100)
    assert await desk.store.sweeper.run() == 0


async def test_a_message_that_waits_for_its_retry_is_not_completed(desk: Desk) -> None:
    await desk.configure(completedRetentionSeconds=1)
    await desk.push("a", "b")
    desk.age(100)
    batch = await desk.pop()
    assert batch is not None
    await desk.ack(batch, status=["failed", "completed"])
    await desk.store.sweeper.run()
    assert left(desk) == ["a"]


@pytest.mark.every_postgres
async def test_it_works_in_batches(desk: Desk) -> None:
    desk.store.sweeper._batch = 10
    await desk.configure(retentionSeconds=60)
    await desk.push(*(f"t{n}" for n in range(35)))
    desk.age(61)
    assert await desk.store.sweeper.run() == 35


@pytest.mark.every_postgres
async def test_messages_of_deleted_queues_go(desk: Desk) -> None:
    await desk.push("a", "b")
    await desk.push("c", queue="other")
    await desk.push("d", queue="gone too")
    assert await desk.store.queues.delete("q")
    assert await desk.store.queues.delete("gone too")
    assert await desk.store.sweeper.run() == 3
    assert left(desk) == ["c"]


@pytest.mark.every_postgres
async def test_only_one_sweeper_works_at_a_time(desk: Desk) -> None:
    await desk.configure(ttl=60)
    await desk.push("a")
    desk.age(61)
    with desk.connect() as other:
        other.execute("SELECT pg_advisory_lock(%s)", (0x7173737765657020,))
        assert await desk.store.sweeper.run() == 0
        other.execute("SELECT pg_advisory_unlock(%s)", (0x7173737765657020,))
    assert await desk.store.sweeper.run() == 1


@pytest.mark.every_postgres
async def test_old_samples_are_thinned_and_those_before_the_log_removed(desk: Desk) -> None:
    await desk.push("first")
    desk.run("UPDATE queenspark.messages SET txid = 60")
    desk.run(
        "INSERT INTO queenspark.looks"
        " SELECT date_trunc('minute', now()) - interval '2 hours' + n * interval '1 second',"
        " n, n, now() FROM generate_series(0, 119) n"
    )
    await desk.store.sweeper.run()
    assert desk.run("SELECT txid FROM queenspark.looks") == [(60,)]
