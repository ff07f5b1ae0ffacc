"""One way into the log: limits, maintenance, encryption, push and wake-up."""

import pytest

from queenspark.store.delivery import Ack
from queenspark.store.errors import QueueFull, TransactionRefused
from queenspark.store.log import LogReader
from tests.store.desk import Desk, item

pytestmark = pytest.mark.anyio

LONG = 20.0


async def test_appended_messages_are_stored_and_wake_parked_polls(desk: Desk, database: str) -> None:
    with LogReader(database) as reader:
        reader.listen()
        pushed = await desk.store.appender().append([item("q", "a"), item("other", "b")])
        assert [each.duplicate for each in pushed] == [False, False]
        assert reader.wait(LONG, {"other"})
    assert await desk.popped() == ["a"]


async def test_every_queue_of_a_request_has_to_have_room(desk: Desk) -> None:
    await desk.configure("small", maxSize=2)
    appender = desk.store.appender()
    items = [item("q", "a"), *(item("small", id_) for id_ in "bcd")]
    with pytest.raises(QueueFull, match="small is full"):
        await appender.append(items)
    with pytest.raises(QueueFull, match="small is full"):
        await appender.append_and_ack(items, [])
    assert await desk.popped() == []


async def test_in_push_maintenance_everything_is_staged(desk: Desk) -> None:
    appender = desk.store.appender()
    await desk.store.maintenance.set_push(True)
    await appender.append([item("q", "a")])
    await appender.append_and_ack([item("q", "b")], [])
    assert await desk.store.maintenance.staged() == 2
    await desk.store.maintenance.set_push(False)
    assert await desk.popped() == ["a", "b"]


async def test_payloads_of_encrypted_queues_are_not_readable(desk: Desk) -> None:
    await desk.configure("secrets", encryptionEnabled=True)
    await desk.store.appender().append([item("secrets", "a", payload="hidden")])
    ((payload, encrypted),) = desk.run("SELECT payload, encrypted FROM queenspark.messages")
    assert encrypted
    assert "hidden" not in payload


async def test_a_push_with_an_ack_that_is_refused_appends_nothing(desk: Desk) -> None:
    await desk.push("in")
    batch = await desk.pop()
    assert batch is not None
    (message,) = batch.messages
    ack = [Ack(message.partition_id, message.transaction_id, "g", batch.lease_id, "completed", None)]
    await desk.store.appender().append_and_ack([item("out", "first")], ack)
    with pytest.raises(TransactionRefused):
        await desk.store.appender().append_and_ack([item("out", "again")], ack)
    assert await desk.popped(queue="out") == ["first"]
