"""Consume loops: batches, one by one, concurrently, failing, stopping."""

import asyncio
from typing import Any

from queen import Queen

from tests.wire.clients.patience import waiting

POLL_MS = 200
"""Timeout of the loops' polls; short, so that loops that end when idle end soon."""


async def _push(queen: Queen, name: str, count: int, partitions: int = 1) -> None:
    for partition in range(partitions):
        items = [{"data": number} for number in range(partition, count, partitions)]
        await queen.queue(name).partition(f"p{partition}").push(items)


async def _nothing_left(queen: Queen, name: str) -> bool:
    return await queen.queue(name).wait(False).pop() == []


async def a_loop_ends_at_its_limit_and_has_acked(queen: Queen, name: str) -> None:
    await _push(queen, name, 5)
    seen = []

    async def handle(message: Any) -> None:
        seen.append(message["data"])

    await queen.queue(name).batch(1).limit(5).consume(handle)
    assert seen == [0, 1, 2, 3, 4]
    assert await _nothing_left(queen, name)


async def a_batch_is_handed_over_as_a_list(queen: Queen, name: str) -> None:
    await _push(queen, name, 10)
    batches = []

    async def handle(messages: Any) -> None:
        batches.append([message["data"] for message in messages])

    await queen.queue(name).batch(5).limit(10).consume(handle)
    assert batches == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    assert await _nothing_left(queen, name)


async def each_hands_over_one_message_at_a_time(queen: Queen, name: str) -> None:
    await _push(queen, name, 10)
    seen = []

    async def handle(message: Any) -> None:
        seen.append(message["data"])

    await queen.queue(name).batch(5).each().limit(10).consume(handle)
    assert seen == list(range(10))
    assert await _nothing_left(queen, name)


async def workers_share_the_partitions_and_keep_their_order(queen: Queen, name: str) -> None:
    await _push(queen, name, 60, partitions=6)
    seen: dict[str, list[int]] = {}

    async def handle(messages: Any) -> None:
        for message in messages:
            seen.setdefault(message["partition"], []).append(message["data"])

    loop = waiting(queen.queue(name).concurrency(3).batch(4).idle_millis(2000), POLL_MS)
    await loop.consume(handle)
    assert seen == {f"p{p}": list(range(p, 60, 6)) for p in range(6)}


async def silence_ends_a_loop_with_an_idle_limit(queen: Queen, name: str) -> None:
    await _push(queen, name, 2)
    seen = []

    async def handle(message: Any) -> None:
        seen.append(message)

    await waiting(queen.queue(name).batch(1).idle_millis(1000), POLL_MS).consume(handle)
    assert len(seen) == 2


async def a_signal_ends_a_loop(queen: Queen, name: str) -> None:
    stop = asyncio.Event()
    await _push(queen, name, 3)

    async def handle(message: Any) -> None:
        if message["data"] == 2:
            stop.set()

    await waiting(queen.queue(name).batch(1), POLL_MS).consume(handle, signal=stop)
    assert await _nothing_left(queen, name)


async def a_failing_handler_gets_its_message_again(queen: Queen, name: str) -> None:
    await queen.queue(name).config({"retry_delay": 0}).create()
    await _push(queen, name, 3)
    seen = []

    async def handle(message: Any) -> None:
        seen.append(message["data"])
        if seen == [0, 1]:
            raise ValueError("not today")

    await queen.queue(name).batch(1).limit(4).consume(handle)
    assert seen == [0, 1, 1, 2]
    assert await _nothing_left(queen, name)


async def a_handler_that_always_fails_makes_a_dead_letter(queen: Queen, name: str) -> None:
    await queen.queue(name).config({"retry_delay": 0, "retry_limit": 2}).create()
    await _push(queen, name, 2)
    seen = []

    async def handle(message: Any) -> None:
        seen.append(message["data"])
        if message["data"] == 0:
            raise ValueError("never")

    await queen.queue(name).group("g").batch(1).limit(4).consume(handle)
    assert seen == [0, 0, 0, 1]
    dead = await queen.queue(name).dlq("g").get()
    assert [letter["data"] for letter in dead["messages"]] == [0]


async def a_failing_batch_is_redelivered_as_a_whole(queen: Queen, name: str) -> None:
    await queen.queue(name).config({"retry_delay": 0}).create()
    await _push(queen, name, 3)
    batches = []

    async def handle(messages: Any) -> None:
        batches.append([message["data"] for message in messages])
        if len(batches) == 1:
            raise ValueError("not today")

    await queen.queue(name).batch(3).limit(6).consume(handle)
    assert batches == [[0, 1, 2], [0, 1, 2]]
    assert await _nothing_left(queen, name)


async def each_nacks_the_message_that_failed_and_goes_on_with_it(queen: Queen, name: str) -> None:
    await queen.queue(name).config({"retry_delay": 0}).create()
    await _push(queen, name, 4)
    seen = []

    async def handle(message: Any) -> None:
        seen.append(message["data"])
        if seen == [0, 1]:
            raise ValueError("not today")

    await waiting(queen.queue(name).batch(4).each().idle_millis(1000), POLL_MS).consume(handle)
    assert seen[:2] == [0, 1]
    assert set(seen) == {0, 1, 2, 3}
    assert seen.count(0) == 1
    assert seen.count(1) == 2
    assert await _nothing_left(queen, name)


async def a_loop_without_auto_ack_leaves_acking_to_the_handler(queen: Queen, name: str) -> None:
    await _push(queen, name, 2)
    results = []

    async def handle(message: Any) -> None:
        results.append(await queen.ack(message, True, {"group": "g"}))

    await queen.queue(name).group("g").auto_ack(False).batch(1).limit(2).consume(handle)
    assert [result["success"] for result in results] == [True, True]
    assert await queen.queue(name).group("g").wait(False).pop() == []


async def callbacks_decide_about_the_message(queen: Queen, name: str) -> None:
    await queen.queue(name).config({"retry_delay": 0}).create()
    await _push(queen, name, 2)
    seen: list[Any] = []

    async def handle(message: Any) -> None:
        seen.append(message["data"])
        if seen == [0]:
            raise ValueError("not today")

    async def succeeded(message: Any, result: Any) -> None:
        await queen.ack(message, True)

    async def failed(message: Any, error: Exception) -> None:
        await queen.ack(message, False, {"error": str(error)})

    loop = queen.queue(name).batch(1).limit(3).consume(handle)
    await loop.on_success(succeeded).on_error(failed)
    assert seen == [0, 0, 1]
    assert await _nothing_left(queen, name)


async def a_renewed_lease_outlasts_a_slow_handler(queen: Queen, name: str) -> None:
    await queen.queue(name).config({"lease_time": 2}).create()
    await _push(queen, name, 1)
    stop = asyncio.Event()
    seen = []

    async def handle(message: Any) -> None:
        seen.append(message["data"])
        await asyncio.sleep(2.5)  # the work: longer than the lease, while the other worker waits
        stop.set()

    loop = waiting(queen.queue(name).batch(1).concurrency(2), POLL_MS)
    await loop.renew_lease(True, 500).consume(handle, signal=stop)
    assert seen == [0]
    assert await _nothing_left(queen, name)


async def a_loop_by_namespace_finds_its_queues(queen: Queen, name: str) -> None:
    for number in range(3):
        await queen.queue(f"{name}-{number}").namespace(name).create()
        await queen.queue(f"{name}-{number}").push([{"data": number}])
    seen = []

    async def handle(message: Any) -> None:
        seen.append(message["data"])

    await queen.queue().namespace(name).batch(1).limit(3).consume(handle)
    assert sorted(seen) == [0, 1, 2]


async def a_handler_may_leave_traces(queen: Queen, name: str) -> None:
    await _push(queen, name, 1)
    results = []

    async def handle(message: Any) -> None:
        trace = {"traceName": f"trace-{name}", "eventType": "step", "data": {"text": "half way"}}
        results.append(await message["trace"](trace))

    await queen.queue(name).batch(1).limit(1).consume(handle)
    assert results[0]["success"] is True
    found = await queen.admin.get_traces_by_name(f"trace-{name}")
    assert [trace["data"] for trace in found["traces"]] == [{"text": "half way"}]
