"""Dead letters: found, retried, deleted; they outlive the log."""

import pytest

from queenspark.store.dead_letters import Filter
from tests.store.desk import Desk, item, names

pytestmark = pytest.mark.anyio


async def bury(desk: Desk, *ids: str, group: str = "g", partition: str = "p") -> None:
    """Push messages and send them to the dead letters."""
    await desk.push(*ids, partition=partition)
    batch = await desk.pop(100, group, partition=partition)
    assert batch is not None
    await desk.ack(batch, status="dlq", error="broken", group=group)


@pytest.mark.every_postgres
async def test_they_are_found_by_filter(desk: Desk) -> None:
    await bury(desk, "a", partition="p1")
    await bury(desk, "b", "c", partition="p2")
    letters = desk.store.dead_letters
    rows, total = await letters.find(Filter(queue="q", partition="p2"))
    assert {row["transaction_id"] for row in rows} == {"b", "c"}
    assert total == 2
    rows, total = await letters.find(Filter(group="g"), limit=1, offset=5)
    assert (rows, total) == ([], 3)
    assert await letters.find(Filter(group="another")) == ([], 0)


async def test_one_put_back_comes_to_its_own_group_only(desk: Desk) -> None:
    await bury(desk, "a")
    assert await desk.popped(group="other") == ["a"]
    assert len(await desk.store.dead_letters.put_back(Filter(queue="q"))) == 1
    assert await desk.store.dead_letters.find(Filter()) == ([], 0)
    assert await desk.popped(group="other") == []
    batch = await desk.pop()
    assert batch is not None
    assert [(message.transaction_id, message.retries) for message in batch.messages] == [("a", 1)]
    assert await desk.outcomes(batch) == ["completed"]
    desk.expire_leases()
    assert await desk.pop() is None


async def test_one_put_back_that_fails_again_is_dead_again(desk: Desk) -> None:
    await bury(desk, "a")
    await desk.store.dead_letters.put_back(Filter(queue="q"))
    batch = await desk.pop()
    assert batch is not None
    assert await desk.outcomes(batch, status="failed", error="again") == ["dead"]
    ((row,), total) = await desk.store.dead_letters.find(Filter())
    assert (row["error"], row["attempts"], total) == ("again", 2, 1)
    assert await desk.pop() is None


async def test_one_put_back_is_redelivered_when_its_lease_expires(desk: Desk) -> None:
    await bury(desk, "a")
    await desk.store.dead_letters.put_back(Filter(queue="q"))
    assert names(await desk.pop()) == ["a"]
    desk.expire_leases()
    batch = await desk.pop()
    assert batch is not None
    assert names(batch) == ["a"]
    await desk.push("b")
    await desk.ack(batch)
    assert names(await desk.pop()) == ["b"]


async def test_they_outlive_the_message(desk: Desk) -> None:
    await bury(desk, "a")
    desk.run("DELETE FROM queenspark.messages")
    await desk.store.dead_letters.put_back(Filter(queue="q"))
    batch = await desk.pop()
    assert batch is not None
    assert names(batch) == ["a"]
    assert await desk.outcomes(batch) == ["completed"]


async def test_one_put_back_while_a_lease_is_live_comes_after_it(desk: Desk) -> None:
    await bury(desk, "a")
    await desk.push("b")
    batch = await desk.pop()
    assert batch is not None
    await desk.store.dead_letters.put_back(Filter(queue="q"))
    assert await desk.pop() is None
    await desk.ack(batch)
    assert names(await desk.pop()) == ["a"]


async def test_they_can_be_deleted_by_filter(desk: Desk) -> None:
    await bury(desk, "a", "b")
    assert await desk.store.dead_letters.delete(Filter(queue="q", transaction_id="a")) == 1
    rows, total = await desk.store.dead_letters.find(Filter())
    assert ([row["transaction_id"] for row in rows], total) == (["b"], 1)


async def test_encrypted_ones_are_readable_again(desk: Desk) -> None:
    await desk.configure(encryptionEnabled=True)
    await desk.store.pusher.push([item("q", "a", payload={"secret": 1})])
    batch = await desk.pop()
    assert batch is not None
    await desk.ack(batch, status="dlq")
    ((row,), _) = await desk.store.dead_letters.find(Filter())
    assert row["payload"] == '{"secret":1}'


async def test_one_put_back_is_dead_again_when_its_group_is_restarted(desk: Desk) -> None:
    await bury(desk, "a")
    await desk.store.dead_letters.put_back(Filter(queue="q"))
    await desk.store.groups.delete("g", "q", keep_start=True)
    _, total = await desk.store.dead_letters.find(Filter())
    assert total == 1
    assert len(await desk.store.dead_letters.put_back(Filter(queue="q"))) == 1
    assert names(await desk.pop()) == ["a"]


async def test_a_returned_dead_letter_acked_with_retry_is_redelivered(desk: Desk) -> None:
    await bury(desk, "a")
    await desk.store.dead_letters.put_back(Filter(queue="q"))
    batch = await desk.pop()
    assert batch is not None
    assert await desk.outcomes(batch, status="retry") == ["retry"]
    assert names(await desk.pop()) == ["a"]


async def test_one_that_dies_again_after_a_seek_shows_its_latest_error(desk: Desk) -> None:
    await bury(desk, "a")
    await desk.store.groups.seek("q", "g", "beginning")
    batch = await desk.pop()
    assert batch is not None
    await desk.ack(batch, status="dlq", error="another")
    ((row,), _) = await desk.store.dead_letters.find(Filter())
    assert (row["error"], row["attempts"]) == ("another", 2)
