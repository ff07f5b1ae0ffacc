"""Pushing: order, duplicates, queues that change meanwhile, encryption."""

import asyncio

import pytest

from queenspark.store.errors import QueueFull, Refused
from queenspark.store.store import Store
from tests.store.desk import Desk, item

pytestmark = pytest.mark.anyio


async def test_items_of_a_push_keep_their_order(desk: Desk) -> None:
    ids = [f"z{99 - n}" for n in range(100)]
    await desk.push(*ids)
    assert await desk.popped(100) == ids


async def test_a_transaction_id_is_taken_once_per_partition(desk: Desk) -> None:
    (first,) = await desk.push("a")
    (again,) = await desk.push("a")
    (elsewhere,) = await desk.push("a", partition="other")
    assert (again.id, again.duplicate) == (first.id, True)
    assert not elsewhere.duplicate
    assert await desk.popped() == ["a"]


async def test_a_duplicate_within_one_push_names_the_first(desk: Desk) -> None:
    results = await desk.push("a", "b", "a")
    assert [result.duplicate for result in results] == [False, False, True]
    assert results[2].id == results[0].id


async def test_messages_without_transaction_id_are_all_kept(desk: Desk) -> None:
    results = await desk.store.pusher.push([item("q"), item("q")])
    assert not any(result.duplicate for result in results)
    assert len(await desk.popped()) == 2


@pytest.mark.every_postgres
async def test_many_pushes_of_the_same_ids_at_once_neither_deadlock_nor_double(desk: Desk) -> None:
    ids = [f"t{n}" for n in range(50)]
    pushes = [desk.push(*(ids if n % 2 else reversed(ids)), partition=f"p{n % 2}") for n in range(12)]
    results = await asyncio.gather(*pushes)
    assert sum(not result.duplicate for push in results for result in push) == 100
    assert sorted(await desk.popped(1000, partitions=5)) == sorted(ids * 2)


async def test_a_queue_that_another_broker_deleted_is_made_again(desk: Desk, database: str) -> None:
    await desk.push("a")
    other = Store(database, pool_size=2)
    await other.open()
    assert await other.queues.delete("q")
    await other.close()
    (result,) = await desk.push("b")
    assert not result.duplicate
    assert await desk.popped() == ["b"]


async def test_a_push_that_knew_old_options_is_done_with_the_new_ones(desk: Desk, database: str) -> None:
    await desk.push("plain")
    other = Desk(Store(database, pool_size=2, encryption_key=bytes(32)))
    await other.store.open()
    await other.configure(encryptionEnabled=True)
    await other.store.close()
    await desk.push("secret")
    rows = desk.run("SELECT transaction_id, encrypted FROM queenspark.messages ORDER BY txid")
    assert rows == [("plain", False), ("secret", True)]


async def test_encrypted_payloads_are_unreadable_at_rest_and_readable_in_a_pop(desk: Desk) -> None:
    await desk.configure(encryptionEnabled=True)
    await desk.store.pusher.push([item("q", "t", payload={"card": "4111"})])
    ((stored,),) = desk.run("SELECT payload FROM queenspark.messages")
    assert "4111" not in stored
    assert "card" not in stored
    batch = await desk.pop()
    assert batch is not None
    assert batch.messages[0].payload == '{"card":"4111"}'


@pytest.mark.parametrize("key", [None, bytes(32)])
@pytest.mark.parametrize("auto_ack", [False, True])
async def test_without_the_right_key_nothing_is_handed_out(
    desk: Desk, database: str, key: bytes | None, auto_ack: bool
) -> None:
    await desk.push("plain")
    await desk.configure(encryptionEnabled=True)
    await desk.push("secret")
    other = Desk(Store(database, pool_size=2, encryption_key=key))
    await other.store.open()
    with pytest.raises(Refused, match="key"):
        await other.pop(auto_ack=auto_ack)
    await other.store.close()
    assert await desk.popped() == ["plain", "secret"]


async def test_max_size_refuses_and_opens_again_when_consumed(desk: Desk) -> None:
    queue = await desk.configure(maxSize=3)
    await desk.store.queues.check_room(queue, 3)
    await desk.push("a", "b", "c")
    with pytest.raises(QueueFull, match="maxSize is 3"):
        await desk.store.queues.check_room(queue, 1)
    assert await desk.popped(2) == ["a", "b"]
    desk.store.queues._backlogs.clear()  # a count is believed for a moment
    await desk.store.queues.check_room(queue, 2)
