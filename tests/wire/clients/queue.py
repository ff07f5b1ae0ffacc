"""Queues: created, configured, deleted."""

from queen import Queen


async def a_queue_is_created_with_its_options(queen: Queen, name: str) -> None:
    options = {"lease_time": 60, "retry_limit": 5, "priority": 2}
    response = await queen.queue(name).namespace("ns").task("t").config(options).create()
    assert response["configured"] is True
    assert (response["queue"], response["namespace"], response["task"]) == (name, "ns", "t")
    assert response["options"]["leaseTime"] == 60
    assert response["options"]["retryLimit"] == 5
    assert response["options"]["priority"] == 2


async def a_queue_is_created_without_any_options(queen: Queen, name: str) -> None:
    response = await queen.queue(name).create()
    assert response["options"]["leaseTime"] == 300


async def a_queue_is_deleted_with_its_messages(queen: Queen, name: str) -> None:
    await queen.queue(name).push([{"data": 1}])
    response = await queen.queue(name).delete()
    assert (response["deleted"], response["existed"]) == (True, True)
    assert await queen.queue(name).wait(False).pop() == []


async def creating_calls_back(queen: Queen, name: str) -> None:
    seen = []

    async def created(response: object) -> None:
        seen.append(response)

    await queen.queue(name).create().on_success(created)
    assert len(seen) == 1
