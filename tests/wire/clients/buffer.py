"""Buffered pushes: gathered by the client, complete after a flush."""

from queen import Queen


async def buffered_pushes_arrive_after_a_flush(queen: Queen, name: str) -> None:
    options = {"message_count": 40, "time_millis": 60_000}
    for number in range(100):
        await queen.queue(name).buffer(options).push([{"data": number}])
    await queen.flush_all_buffers()
    messages = await queen.queue(name).batch(200).pop()
    assert sorted(message["data"] for message in messages) == list(range(100))
    assert queen.get_buffer_stats()["totalBufferedMessages"] == 0


async def one_queues_buffer_is_flushed_alone(queen: Queen, name: str) -> None:
    options = {"message_count": 1000, "time_millis": 60_000}
    for queue in (f"{name}-1", f"{name}-2"):
        await queen.queue(queue).buffer(options).push([{"data": queue}])
    await queen.queue(f"{name}-1").flush_buffer()
    assert [m["data"] for m in await queen.queue(f"{name}-1").pop()] == [f"{name}-1"]
    assert await queen.queue(f"{name}-2").wait(False).pop() == []


async def a_full_buffer_sends_itself(queen: Queen, name: str) -> None:
    options = {"message_count": 10, "time_millis": 60_000}
    for number in range(10):
        await queen.queue(name).buffer(options).push([{"data": number}])
    assert len(await queen.queue(name).batch(10).wait(True).pop()) == 10
