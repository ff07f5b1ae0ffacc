"""A group's cursor: where it starts, seeks, and its end."""

from datetime import UTC, datetime

from queen import Queen


async def a_group_starts_with_everything(queen: Queen, name: str) -> None:
    await queen.queue(name).push([{"data": 1}, {"data": 2}])
    messages = await queen.queue(name).group("g").subscription_mode("all").batch(9).pop()
    assert [message["data"] for message in messages] == [1, 2]


async def a_group_may_start_with_new_messages(queen: Queen, name: str) -> None:
    await queen.queue(name).push([{"data": "before"}])
    builder = queen.queue(name).group("g").subscription_mode("new").batch(9)
    assert await builder.wait(False).pop() == []
    await queen.queue(name).push([{"data": "after"}])
    assert [message["data"] for message in await builder.wait(True).pop()] == ["after"]


async def a_group_starts_with_everything_in_the_words_of_queens_tests(queen: Queen, name: str) -> None:
    await queen.queue(name).push([{"data": 1}, {"data": 2}])
    for word in ("from_beginning", "earliest"):
        messages = await queen.queue(name).group(word).subscription_mode(word).batch(9).pop()
        assert [message["data"] for message in messages] == [1, 2]
    for word in ("new-only", "latest"):
        assert await queen.queue(name).group(word).subscription_mode(word).wait(False).pop() == []


async def a_group_may_start_at_a_time(queen: Queen, name: str) -> None:
    await queen.queue(name).push([{"data": "before"}])
    between = datetime.now(UTC).isoformat()
    await queen.queue(name).push([{"data": "after"}])
    messages = await queen.queue(name).group("g").subscription_from(between).batch(9).pop()
    assert [message["data"] for message in messages] == ["after"]


async def seeking_to_the_end_skips_the_backlog(queen: Queen, name: str) -> None:
    await queen.queue(name).push([{"data": "skipped"}])
    await queen.admin.seek_consumer_group("g", name, {"toEnd": True})
    assert await queen.queue(name).group("g").wait(False).pop() == []
    await queen.queue(name).push([{"data": "next"}])
    assert [message["data"] for message in await queen.queue(name).group("g").batch(9).pop()] == ["next"]


async def seeking_to_a_time_delivers_from_there(queen: Queen, name: str) -> None:
    await queen.queue(name).push([{"data": "old"}])
    between = datetime.now(UTC).isoformat()
    await queen.queue(name).push([{"data": "new"}])
    messages = await queen.queue(name).group("g").batch(9).pop()
    await queen.ack(messages, True, {"group": "g"})
    await queen.admin.seek_consumer_group("g", name, {"timestamp": between})
    assert [message["data"] for message in await queen.queue(name).group("g").batch(9).pop()] == ["new"]


async def a_deleted_group_starts_again(queen: Queen, name: str) -> None:
    group = f"g-{name}"
    await queen.queue(name).push([{"data": 1}])
    await queen.ack(await queen.queue(name).group(group).pop(), True, {"group": group})
    await queen.delete_consumer_group(group)
    assert [message["data"] for message in await queen.queue(name).group(group).pop()] == [1]


async def a_group_is_deleted_for_one_queue(queen: Queen, name: str) -> None:
    group = f"g-{name}"
    await queen.queue(name).push([{"data": 1}])
    await queen.ack(await queen.queue(name).group(group).pop(), True, {"group": group})
    await queen.admin.delete_consumer_group_for_queue(group, name)
    assert [message["data"] for message in await queen.queue(name).group(group).pop()] == [1]


async def a_groups_subscription_time_is_updated(queen: Queen, name: str) -> None:
    group = f"g-{name}"
    await queen.queue(name).push([{"data": 1}])
    await queen.queue(name).group(group).subscription_mode("new").wait(False).pop()
    assert await queen.update_consumer_group_timestamp(group, "2001-01-01T00:00:00Z")
