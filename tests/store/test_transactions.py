"""Atomic pushes and acks."""

from uuid import uuid4

import pytest

from queenspark.store.delivery import Ack, Batch
from queenspark.store.errors import TransactionRefused
from tests.store.desk import Desk, item, names

pytestmark = pytest.mark.anyio


def acks(batch: Batch, status: str = "completed") -> list[Ack]:
    """An ack for each message of a batch."""
    return [
        Ack(message.partition_id, message.transaction_id, "g", batch.lease_id, status, "why")
        for message in batch.messages
    ]


@pytest.mark.every_postgres
async def test_ack_and_push_happen_together(desk: Desk) -> None:
    await desk.push("in")
    batch = await desk.pop()
    assert batch is not None
    await desk.store.transactions.run([item("out", "result")], acks(batch), [batch.lease_id])
    assert await desk.popped(queue="out") == ["result"]
    desk.expire_leases()
    assert await desk.pop() is None


async def test_a_stale_lease_refuses_the_whole_transaction(desk: Desk) -> None:
    await desk.push("in")
    batch = await desk.pop()
    assert batch is not None
    desk.expire_leases()
    with pytest.raises(TransactionRefused, match="expired"):
        await desk.store.transactions.run([item("out", "result")], acks(batch))
    assert await desk.popped(queue="out") == []
    assert names(await desk.pop()) == ["in"]


async def test_required_leases_must_live(desk: Desk) -> None:
    with pytest.raises(TransactionRefused, match="lease"):
        await desk.store.transactions.run([item("out", "result")], [], [uuid4()])
    await desk.push("in")
    batch = await desk.pop()
    assert batch is not None
    desk.expire_leases()
    with pytest.raises(TransactionRefused, match="lease"):
        await desk.store.transactions.run([item("out", "result")], [], [batch.lease_id])
    assert await desk.popped(queue="out") == []


async def test_one_rejected_ack_rolls_back_the_accepted_ones(desk: Desk) -> None:
    await desk.push("a", "b")
    batch = await desk.pop()
    assert batch is not None
    wanted = acks(batch)
    wanted[1] = wanted[1]._replace(transaction_id="unheard of")
    with pytest.raises(TransactionRefused, match="unheard of"):
        await desk.store.transactions.run([], wanted)
    desk.expire_leases()
    assert names(await desk.pop()) == ["a", "b"]


async def test_a_nack_in_a_transaction_is_a_dead_letter_at_once(desk: Desk) -> None:
    await desk.push("in")
    batch = await desk.pop()
    assert batch is not None
    _, results = await desk.store.transactions.run([item("out", "x")], acks(batch, "failed"))
    assert [result.outcome for result in results] == ["dead"]
    assert desk.run("SELECT transaction_id, error FROM queenspark.dead_letters") == [("in", "why")]


async def test_a_transaction_into_a_queue_that_was_deleted_meanwhile_makes_it_again(desk: Desk) -> None:
    await desk.push("x", queue="out")
    desk.run("DELETE FROM queenspark.queues WHERE name = 'out'")
    await desk.store.transactions.run([item("out", "y")], [])
    assert await desk.popped(queue="out") == ["y"]


async def test_a_transaction_that_is_sent_twice_happens_once(desk: Desk) -> None:
    await desk.push("in")
    batch = await desk.pop()
    assert batch is not None
    await desk.store.transactions.run([item("out")], acks(batch), [batch.lease_id])
    with pytest.raises(TransactionRefused, match="lease has expired"):
        await desk.store.transactions.run([item("out")], acks(batch), [batch.lease_id])
    with pytest.raises(TransactionRefused, match="already acked"):
        await desk.store.transactions.run([item("out")], acks(batch))
    assert len(await desk.popped(queue="out")) == 1
