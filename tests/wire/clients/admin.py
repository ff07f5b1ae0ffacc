"""The admin calls: each responds with the expected content."""

import asyncio

from queen import Queen


async def the_overview_is_served(queen: Queen, name: str) -> None:
    await queen.queue(name).push([{"data": 1}])
    assert (await queen.admin.get_overview())["queues"] >= 1


async def queues_are_listed_and_shown(queen: Queen, name: str) -> None:
    await queen.queue(name).namespace("ns").create()
    listed = await queen.admin.list_queues()
    assert name in [queue["name"] for queue in listed["queues"]]
    assert (await queen.admin.get_queue(name))["name"] == name


async def namespaces_and_tasks_are_listed(queen: Queen, name: str) -> None:
    await queen.queue(name).namespace(f"ns-{name}").task(f"task-{name}").create()
    assert f"ns-{name}" in str(await queen.admin.get_namespaces())
    assert f"task-{name}" in str(await queen.admin.get_tasks())


async def messages_are_listed_shown_and_deleted(queen: Queen, name: str) -> None:
    await queen.queue(name).push([{"data": "x"}])
    listed = (await queen.admin.list_messages(queue=name))["messages"]
    assert [message["data"] for message in listed] == ["x"]
    address = (listed[0]["partitionId"], listed[0]["transactionId"])
    assert (await queen.admin.get_message(*address))["data"] == "x"
    await queen.admin.delete_message(*address)
    assert (await queen.admin.list_messages(queue=name))["messages"] == []


async def groups_are_listed_and_shown(queen: Queen, name: str) -> None:
    group = f"g-{name}"
    await queen.queue(name).push([{"data": 1}, {"data": 2}])
    await queen.ack(await queen.queue(name).group(group).batch(1).pop(), True, {"group": group})
    assert group in str(await queen.admin.list_consumer_groups())
    assert name in str(await queen.admin.get_consumer_group(group))
    for _ in range(100):  # lag is counted in the background
        if group in str(await queen.admin.get_lagging_consumers(0)):
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"{group} does not lag")


async def traces_are_found(queen: Queen, name: str) -> None:
    await queen.queue(name).push([{"data": 1}])
    message = (await queen.queue(name).pop())[0]
    address = (message["partitionId"], message["transactionId"])
    assert (await queen.admin.get_traces_for_message(*address))["traces"] == []
    assert await queen.admin.get_trace_names() is not None
    assert (await queen.admin.get_traces_by_name(f"never-{name}"))["traces"] == []


async def status_and_analytics_are_served(queen: Queen, name: str) -> None:
    await queen.queue(name).push([{"data": 1}])
    assert await queen.admin.get_status() is not None
    assert name in str(await queen.admin.get_queue_stats())
    assert name in str(await queen.admin.get_queue_detail(name))
    assert await queen.admin.get_analytics(interval="hour") is not None


async def health_and_metrics_are_served(queen: Queen, name: str) -> None:
    health = await queen.admin.health()
    assert (health["status"], health["database"]) == ("healthy", "connected")
    assert await queen.admin.metrics()
