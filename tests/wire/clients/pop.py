"""Pops: empty, waiting, by partition, by namespace and task."""

import asyncio
import time

from queen import Queen

from tests.wire.clients.patience import waiting


async def an_empty_queue_gives_nothing_at_once(queen: Queen, name: str) -> None:
    await queen.queue(name).create()
    assert await queen.queue(name).wait(False).pop() == []


async def a_long_poll_wakes_on_a_push(queen: Queen, name: str) -> None:
    parked = asyncio.create_task(waiting(queen.queue(name), 20_000).wait(True).pop())
    await asyncio.sleep(0)
    started = time.monotonic()
    await queen.queue(name).push([{"data": "wake up"}])
    messages = await parked
    assert [message["data"] for message in messages] == ["wake up"]
    assert time.monotonic() - started < 5


async def a_long_poll_times_out_with_nothing(queen: Queen, name: str) -> None:
    started = time.monotonic()
    assert await waiting(queen.queue(name), 400).wait(True).pop() == []
    assert 0.3 < time.monotonic() - started < 5


async def a_batch_shares_one_lease(queen: Queen, name: str) -> None:
    await queen.queue(name).push([{"data": number} for number in range(5)])
    messages = await queen.queue(name).batch(3).pop()
    assert [message["data"] for message in messages] == [0, 1, 2]
    assert len({message["leaseId"] for message in messages}) == 1


async def several_partitions_come_in_one_pop(queen: Queen, name: str) -> None:
    for partition in "abc":
        await queen.queue(name).partition(partition).push([{"data": partition}])
    messages = await queen.queue(name).batch(10).partitions(3).pop()
    assert sorted(message["data"] for message in messages) == ["a", "b", "c"]
    assert len({message["leaseId"] for message in messages}) == 1


async def a_pop_by_namespace_and_task_finds_the_queue(queen: Queen, name: str) -> None:
    await queen.queue(name).namespace(f"ns-{name}").task(f"task-{name}").create()
    await queen.queue(name).push([{"data": 1}])
    messages = await queen.queue().namespace(f"ns-{name}").batch(1).pop()
    assert [message["queue"] for message in messages] == [name]
    await queen.ack(messages)
    await queen.queue(name).push([{"data": 2}])
    messages = await queen.queue().task(f"task-{name}").batch(1).pop()
    assert [message["data"] for message in messages] == [2]


async def groups_each_get_every_message(queen: Queen, name: str) -> None:
    await queen.queue(name).push([{"data": 1}])
    for group in ("one", "two"):
        messages = await queen.queue(name).group(group).pop()
        assert [message["data"] for message in messages] == [1]
        assert messages[0]["consumerGroup"] == group


async def a_commit_at_delivery_needs_no_ack(queen: Queen, name: str) -> None:
    builder = queen.queue(name).wait(False).batch(10)
    if not hasattr(builder, "commit_on_delivery"):
        return  # the older client cannot ask for it
    await queen.queue(name).push([{"data": 1}])
    messages = await queen.queue(name).batch(10).commit_on_delivery().pop()
    assert [message["leaseId"] for message in messages] == [""]
    assert await builder.pop() == []
