"""Dead letters: queried, retried, deleted."""

from datetime import UTC, datetime, timedelta
from typing import Any

from queen import Queen


async def _bury(queen: Queen, name: str, *values: Any, group: str = "g") -> None:
    await queen.queue(name).partition("p").push([{"data": value} for value in values])
    messages = await queen.queue(name).partition("p").group(group).batch(len(values)).pop()
    assert len(messages) == len(values)
    await queen.ack(messages, "dlq", {"group": group, "error": "hopeless"})


async def retries_end_in_the_dead_letters(queen: Queen, name: str) -> None:
    await queen.queue(name).config({"retry_limit": 1, "retry_delay": 0}).create()
    await queen.queue(name).push([{"data": "poison"}])
    for attempt in range(2):
        messages = await queen.queue(name).group("g").pop()
        await queen.ack(messages, False, {"group": "g", "error": f"attempt {attempt}"})
    dead = await queen.queue(name).dlq("g").limit(10).get()
    assert dead["total"] == 1
    assert dead["messages"][0]["errorMessage"] == "attempt 1"
    assert dead["messages"][0]["data"] == "poison"
    assert await queen.queue(name).group("g").wait(False).pop() == []


async def a_loop_that_fails_without_delay_ends_in_the_dead_letters(queen: Queen, name: str) -> None:
    """A queue whose `retryDelay` is 0, read from the beginning: others of its partition come after it."""
    await queen.queue(name).config({"retry_limit": 2, "retry_delay": 0}).create()
    await queen.queue(name).push([{"data": "poison"}, {"data": "good"}])
    seen = []

    async def handle(message: Any) -> None:
        seen.append((message["data"], message["retryCount"]))
        if message["data"] == "poison":
            raise ValueError("never")

    source = queen.queue(name).group("g").subscription_mode("from_beginning")
    await source.batch(1).each().limit(4).consume(handle).on_error(_nack(queen))
    assert seen == [("poison", 0), ("poison", 1), ("poison", 2), ("good", 0)]
    dead = await queen.queue(name).dlq("g").get()
    assert [(letter["data"], letter["retryCount"]) for letter in dead["messages"]] == [("poison", 3)]


def _nack(queen: Queen) -> Any:
    async def nack(message: Any, error: Exception) -> None:
        await queen.ack(message, False, {"group": "g", "error": str(error)})

    return nack


async def dead_letters_are_queried_by_group_partition_and_time(queen: Queen, name: str) -> None:
    await _bury(queen, name, 1, 2, 3)
    assert (await queen.queue(name).dlq("g").get())["total"] == 3
    assert (await queen.queue(name).dlq("other").get())["total"] == 0
    assert (await queen.queue(name).partition("p").dlq("g").get())["total"] == 3
    assert (await queen.queue(name).partition("q").dlq("g").get())["total"] == 0
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    assert (await queen.queue(name).dlq("g").from_(later).get())["total"] == 0
    assert (await queen.queue(name).dlq("g").to(later).get())["total"] == 3


async def dead_letters_are_paged(queen: Queen, name: str) -> None:
    await _bury(queen, name, 1, 2, 3)
    first = await queen.queue(name).dlq("g").limit(2).get()
    second = await queen.queue(name).dlq("g").limit(2).offset(2).get()
    letters = first["messages"] + second["messages"]
    assert sorted(letter["data"] for letter in letters) == [1, 2, 3]


async def a_dead_letter_is_put_back(queen: Queen, name: str) -> None:
    await _bury(queen, name, "again")
    letter = (await queen.queue(name).dlq("g").get())["messages"][0]
    await queen.admin.retry_message(letter["partitionId"], letter["transactionId"])
    messages = await queen.queue(name).group("g").pop()
    assert [message["data"] for message in messages] == ["again"]


async def a_dead_letter_is_deleted(queen: Queen, name: str) -> None:
    await _bury(queen, name, "gone")
    letter = (await queen.queue(name).dlq("g").get())["messages"][0]
    await queen.admin.delete_message(letter["partitionId"], letter["transactionId"])
    assert (await queen.queue(name).dlq("g").get())["total"] == 0
