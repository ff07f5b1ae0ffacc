"""Acks and leases by hand."""

from queen import Queen

NOT_A_LEASE = "0b5a7e43-41a6-4f57-9b0a-5c1c3a0d9f01"


async def one_ack_is_a_success(queen: Queen, name: str) -> None:
    await queen.queue(name).push([{"data": 1}])
    message = (await queen.queue(name).pop())[0]
    response = await queen.ack(message)
    assert response["success"] is True
    assert response["transactionId"] == message["transactionId"]
    assert await queen.queue(name).wait(False).pop() == []


async def a_batch_of_acks_is_a_success(queen: Queen, name: str) -> None:
    await queen.queue(name).push([{"data": number} for number in range(3)])
    messages = await queen.queue(name).group("g").batch(3).pop()
    response = await queen.ack(messages, True, {"group": "g"})
    assert response["success"] is True
    assert [result["success"] for result in response["results"]] == [True, True, True]
    assert await queen.queue(name).group("g").wait(False).pop() == []


async def each_message_of_a_batch_may_have_its_own_status(queen: Queen, name: str) -> None:
    await queen.queue(name).config({"retry_delay": 0}).create()
    await queen.queue(name).push([{"data": number} for number in range(3)])
    one, two, three = await queen.queue(name).batch(3).pop()
    await queen.ack(
        [{**one, "_status": True}, {**two, "_status": False, "_error": "no"}, {**three, "_status": True}]
    )
    again = await queen.queue(name).batch(3).pop()
    assert [(message["data"], message["retryCount"]) for message in again] == [(1, 1)]


async def a_nack_brings_the_message_back(queen: Queen, name: str) -> None:
    await queen.queue(name).config({"retry_delay": 0}).create()
    await queen.queue(name).push([{"data": 1}])
    message = (await queen.queue(name).pop())[0]
    assert (await queen.ack(message, False, {"error": "later"}))["success"] is True
    again = (await queen.queue(name).pop())[0]
    assert (again["id"], again["retryCount"]) == (message["id"], 1)


async def an_ack_under_a_lease_that_is_gone_is_refused(queen: Queen, name: str) -> None:
    await queen.queue(name).push([{"data": 1}])
    message = (await queen.queue(name).pop())[0]
    response = await queen.ack({**message, "leaseId": NOT_A_LEASE})
    assert response["success"] is False
    assert response["error"]


async def a_lease_is_renewed(queen: Queen, name: str) -> None:
    await queen.queue(name).push([{"data": 1}])
    message = (await queen.queue(name).pop())[0]
    response = await queen.renew(message)
    assert isinstance(response, dict)
    assert response["success"] is True
    assert response["newExpiresAt"]


async def a_lease_that_is_gone_is_not_renewed(queen: Queen, name: str) -> None:
    response = await queen.renew(NOT_A_LEASE)
    assert isinstance(response, dict)
    assert response["success"] is False
    assert response["error"]
