"""Push maintenance: accepted, kept, and appended in order when it ends."""

import asyncio

import pytest

from queenspark.store.push import Pushed
from queenspark.store.store import Store
from tests.store.desk import Desk, item, names

pytestmark = pytest.mark.anyio


async def stage(desk: Desk, *ids: str) -> list[Pushed]:
    """Stage messages."""
    results = await desk.store.maintenance.stage([item("q", id_) for id_ in ids])
    assert results is not None
    return results


async def test_staged_messages_enter_the_log_in_order(desk: Desk) -> None:
    await desk.push("before")
    await desk.store.maintenance.set_push(True)
    staged = await stage(desk, "s2", "s1")
    await stage(desk, "s0", "before")
    assert await desk.popped() == ["before"]
    assert await desk.store.maintenance.staged() == 4
    assert await desk.store.maintenance.set_push(False) == 4
    await desk.push("after")
    batch = await desk.pop()
    assert batch is not None
    assert names(batch) == ["s2", "s1", "s0", "after"], "and the duplicate is not there twice"
    assert [message.id for message in batch.messages[:2]] == [result.id for result in staged]


async def test_nothing_is_staged_once_it_has_ended(desk: Desk) -> None:
    assert await desk.store.maintenance.stage([item("q", "x")]) is None
    assert await desk.store.maintenance.staged() == 0


@pytest.mark.every_postgres
async def test_its_end_waits_for_pushes_that_are_being_staged(desk: Desk) -> None:
    await desk.store.maintenance.set_push(True)
    with desk.connect() as staging:
        staging.execute("SELECT 1 FROM queenspark.system WHERE push_maintenance FOR SHARE")
        staging.execute(
            "INSERT INTO queenspark.staged (id, queue, partition, encrypted, transaction_id, payload)"
            " VALUES (1, 'q', 'p', false, 'in flight', '1')"
        )
        ending = asyncio.create_task(desk.store.maintenance.set_push(False))
        done, _ = await asyncio.wait({ending}, timeout=0.3)
        assert not done
        staging.commit()
        assert await ending == 1
    assert await desk.popped() == ["in flight"]


async def test_a_transaction_stages_its_pushes(desk: Desk) -> None:
    await desk.push("in")
    batch = await desk.pop()
    assert batch is not None
    await desk.store.maintenance.set_push(True)
    await desk.store.transactions.run([item("q", "out")], [], [batch.lease_id], staging=True)
    assert await desk.store.maintenance.staged() == 1
    await desk.ack(batch)
    assert await desk.pop() is None
    await desk.store.maintenance.set_push(False)
    assert await desk.popped() == ["out"]


async def test_staged_payloads_of_encrypted_queues_are_unreadable(desk: Desk) -> None:
    await desk.configure(encryptionEnabled=True)
    await desk.store.maintenance.set_push(True)
    await desk.store.maintenance.stage([item("q", "t", payload="secret")])
    ((stored,),) = desk.run("SELECT payload FROM queenspark.staged")
    assert "secret" not in stored
    await desk.store.maintenance.set_push(False)
    batch = await desk.pop()
    assert batch is not None
    assert batch.messages[0].payload == '"secret"'


async def test_messages_staged_by_two_brokers_enter_the_log_in_staging_order(
    desk: Desk, database: str
) -> None:
    other = Desk(Store(database, pool_size=2))
    await other.store.open()
    await desk.store.maintenance.set_push(True)
    for n in range(6):
        await stage((desk, other)[n % 2], f"s{n}")
    await other.store.maintenance.set_push(False)
    await other.store.close()
    assert await desk.popped() == [f"s{n}" for n in range(6)]
