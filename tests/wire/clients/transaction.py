"""Transactions: acks and pushes together or not at all."""

from typing import Any

from queen import Queen


async def _pop_one(queen: Queen, name: str) -> dict[str, Any]:
    await queen.queue(name).push([{"data": "in"}])
    return (await queen.queue(name).pop())[0]


async def an_ack_and_a_push_happen_together(queen: Queen, name: str) -> None:
    message = await _pop_one(queen, name)
    response = await queen.transaction().ack(message).queue(f"{name}-out").push([{"data": "out"}]).commit()
    assert response["success"] is True
    assert await queen.queue(name).wait(False).pop() == []
    assert [m["data"] for m in await queen.queue(f"{name}-out").pop()] == ["out"]


async def a_chain_of_queues_moves_step_by_step(queen: Queen, name: str) -> None:
    await queen.queue(f"{name}-0").push([{"data": 0}])
    for step in range(3):
        message = (await queen.queue(f"{name}-{step}").group("g").pop())[0]
        transaction = queen.transaction().ack(message, "completed", {"consumer_group": "g"})
        await transaction.queue(f"{name}-{step + 1}").partition("p").push([{"data": step + 1}]).commit()
    messages = await queen.queue(f"{name}-3").group("g").pop()
    assert [(m["data"], m["partition"]) for m in messages] == [(3, "p")]


async def a_failed_transaction_raises_and_changes_nothing(queen: Queen, name: str) -> None:
    message = await _pop_one(queen, name)
    await queen.ack(message)  # the lease is over
    reasons = []
    try:
        await queen.transaction().ack(message).queue(f"{name}-out").push([{"data": "out"}]).commit()
    except Exception as error:  # noqa: BLE001 - the clients raise bare exceptions
        reasons.append(str(error))
    assert len(reasons) == 1
    assert reasons[0]
    assert await queen.queue(f"{name}-out").wait(False).pop() == []


async def failing_in_a_transaction_makes_a_dead_letter(queen: Queen, name: str) -> None:
    message = await _pop_one(queen, name)
    await queen.transaction().ack(message, "failed").commit()
    dead = await queen.queue(name).dlq().get()
    assert [letter["transactionId"] for letter in dead["messages"]] == [message["transactionId"]]


async def messages_of_several_leases_are_acked_together(queen: Queen, name: str) -> None:
    for partition in "ab":
        await queen.queue(name).partition(partition).push([{"data": partition}])
    messages = [(await queen.queue(name).partition(partition).pop())[0] for partition in "ab"]
    response = await queen.transaction().ack(messages).queue(f"{name}-out").push([{"data": "both"}]).commit()
    assert response["success"] is True
    assert await queen.queue(name).wait(False).batch(9).partitions(9).pop() == []
