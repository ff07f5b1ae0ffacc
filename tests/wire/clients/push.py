"""Pushes: one, many, repeated, refused."""

from typing import Any

from queen import Queen


async def one_message_is_pushed_and_popped(queen: Queen, name: str) -> None:
    results = await queen.queue(name).push({"data": {"n": 1}})
    assert [result["status"] for result in results] == ["queued"]
    messages = await queen.queue(name).pop()
    assert [message["data"] for message in messages] == [{"n": 1}]
    assert messages[0]["transactionId"] == results[0]["transaction_id"]


async def many_messages_keep_their_order(queen: Queen, name: str) -> None:
    await queen.queue(name).partition("p").push([{"data": number} for number in range(100)])
    messages = await queen.queue(name).partition("p").batch(100).pop()
    assert [message["data"] for message in messages] == list(range(100))


async def empty_values_survive(queen: Queen, name: str) -> None:
    values: list[Any] = [None, 0, "", False, [], {}]
    await queen.queue(name).push([{"data": value} for value in values])
    messages = await queen.queue(name).batch(10).pop()
    assert [message["data"] for message in messages] == values


async def a_repeated_transaction_id_calls_back_as_a_duplicate(queen: Queen, name: str) -> None:
    seen: dict[str, list[Any]] = {"success": [], "duplicate": []}

    async def success(items: Any) -> None:
        seen["success"] += items

    async def duplicate(items: Any, error: Exception) -> None:
        seen["duplicate"] += items

    for data in ("first", "second"):
        item = {"transactionId": "same", "data": data}
        await queen.queue(name).push([item]).on_success(success).on_duplicate(duplicate)
    assert [item["payload"] for item in seen["success"]] == ["first"]
    assert [item["payload"] for item in seen["duplicate"]] == ["second"]
    messages = await queen.queue(name).batch(10).pop()
    assert [message["data"] for message in messages] == ["first"]


async def a_trace_id_travels(queen: Queen, name: str) -> None:
    trace = "0b5a7e43-41a6-4f57-9b0a-5c1c3a0d9f01"
    await queen.queue(name).push([{"data": 1, "traceId": trace}])
    assert (await queen.queue(name).pop())[0]["traceId"] == trace


async def a_refused_push_raises_the_brokers_reason(queen: Queen, name: str) -> None:
    reasons = []
    try:
        await queen.queue("x" * 5000).push([{"data": 1}])
    except Exception as error:  # noqa: BLE001 - the clients raise bare exceptions
        reasons.append(str(error))
    assert len(reasons) == 1
    assert "queue" in reasons[0].lower()


async def a_name_with_spaces_and_umlauts_works(queen: Queen, name: str) -> None:
    odd = f"{name} für alle"
    await queen.queue(odd).partition("kör 1").push([{"data": 1}])
    messages = await queen.queue(odd).partition("kör 1").pop()
    assert [message["partition"] for message in messages] == ["kör 1"]
