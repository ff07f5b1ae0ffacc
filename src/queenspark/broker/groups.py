"""Consumer groups over HTTP: list, lag, seek, delete."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from ..store.page import MOST, Page
from .activity import shown_rates
from .broker import Broker
from .errors import bad_request, not_found
from .http import Call, Response, Right, Route, json
from .limits import check_name
from .paging import Limit, OffsetQuery, PageQuery, page_of, paged
from .responses.groups import GroupDeleted, GroupDetail, GroupList, GroupMoved, LaggingGroups, Subscribed
from .times import iso, parse_time

_SORTS = (
    "queue", "createdAt", "partitions", "lag", "lagSeconds", "processing",
    "poppedPerSecond", "ackedPerSecond",
)  # fmt: skip


async def _described(broker: Broker, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rates = await broker.store.rates.of_groups(rows)
    return [{**_group(row), "rates": shown_rates(rates[row["id"]])} for row in rows]


def _group(row: dict[str, Any]) -> dict[str, Any]:
    oldest = row["oldest"] if row["lag"] else None
    age = (datetime.now(UTC) - oldest).total_seconds() if oldest else 0.0
    return {
        "name": row["name"],
        "consumerGroup": row["name"],
        "queue": row["queue"],
        "queueName": row["queue"],
        "subscriptionMode": row["mode"],
        "createdAt": iso(row["created_at"]),
        "partitions": row["places"],
        "activeLeases": row["leases"],
        "lag": row["lag"],
        "processing": row["processing"],
        "oldestUnackedAt": iso(oldest),
        "lagSeconds": max(0.0, age),
        "lastAckedAt": iso(row["acked_at"]),
    }


class GroupsQuery(PageQuery):
    """Filters on the groups."""

    queue: str | None = None


async def list_groups(broker: Broker, call: Call) -> Response:
    """List the groups, one entry per queue of a group."""
    query: GroupsQuery = call.query
    counted_at = await broker.counted_at()
    rows, total = await broker.store.groups.page(
        page_of(query, *_SORTS, visible=call.visible()), queue=query.queue
    )
    shown = paged("consumerGroups", await _described(broker, rows), total, query)
    return json({**shown, "countedAt": counted_at})


class LaggingQuery(GroupsQuery, rename="camel"):
    """Filters on lagging groups."""

    min_lag_seconds: float = 3600


async def lagging(broker: Broker, call: Call) -> Response:
    """List groups whose oldest unacked message is older than minLagSeconds."""
    query: LaggingQuery = call.query
    counted_at = await broker.counted_at()
    rows, total = await broker.store.groups.page(
        page_of(query, *_SORTS, visible=call.visible()),
        queue=query.queue,
        min_lag_seconds=query.min_lag_seconds,
    )
    shown = paged("consumerGroups", await _described(broker, rows), total, query)
    return json({**shown, "minLagSeconds": query.min_lag_seconds, "countedAt": counted_at})


def _cursor(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "partition": row["partition"],
        "partitionId": str(row["partition_id"]),
        "handedOut": row["pending"],
        "leased": row["leased"],
        "leaseExpiresAt": iso(row["lease_expires_at"]) if row["leased"] else None,
        "leaseHolder": row["lease_holder"],
        "leasedAt": iso(row["leased_at"]),
        "availableAt": iso(row["available_at"]),
        "lastAckedAt": iso(row["acked_at"]),
    }


async def get_group(broker: Broker, call: Call) -> Response:
    """Return one group with its queues and a page of its cursors."""
    name = call.path["group"]
    query: CursorsQuery = call.query
    counted_at = await broker.counted_at()
    rows, _ = await broker.store.groups.page(Page(visible=call.visible()), name=name)
    if not rows:
        raise not_found(f"consumer group {name} does not exist")
    cursors: dict[int, list[dict[str, Any]]] = {row["id"]: [] for row in rows}
    found = await broker.store.groups.cursors(list(cursors), query.limit, query.offset, leased=query.leased)
    for cursor in found:
        cursors[cursor["group_id"]].append(_cursor(cursor))
    described = await _described(broker, rows)
    queues = [{**each, "places": cursors[row["id"]]} for each, row in zip(described, rows, strict=True)]
    lag = sum(row["lag"] for row in rows)
    return json({"name": name, "lag": lag, "queues": queues, "countedAt": counted_at})


class CursorsQuery(OffsetQuery):
    """A page of a group's cursors, or of those with a lease."""

    limit: Limit = MOST
    leased: bool = False


class DeleteQuery(msgspec.Struct, rename="camel"):
    """Whether to delete the group's start position, too."""

    delete_metadata: bool = True


async def delete_group(broker: Broker, call: Call) -> Response:
    """Delete a group, on one queue or on all."""
    name, queue = call.path["group"], call.path.get("queue")
    affected = [row["queue"] for row in await broker.store.groups.queues_of(name, queue)]
    affected = [each for each in affected if call.may(each)]
    count = await broker.store.groups.delete(
        name, queue, keep_start=not call.query.delete_metadata, visible=call.visible()
    )
    for known in affected:
        broker.bus.forget(known)
    return json(
        {"success": True, "consumerGroup": name, "queue": queue, "deleted": count > 0, "count": count}
    )


class SubscriptionRequest(msgspec.Struct, rename="camel"):
    """The start position of the group in partitions that it has not read yet."""

    subscription_timestamp: str


async def set_subscription(broker: Broker, call: Call) -> Response:
    """Change the start position of a group."""
    time = parse_time("subscriptionTimestamp", call.body.subscription_timestamp)
    if time is None:
        raise bad_request("subscriptionTimestamp is required")
    name = call.path["group"]
    count = await broker.store.groups.set_start(name, time, call.visible())
    if not count:
        raise not_found(f"consumer group {name} does not exist")
    for row in await broker.store.groups.queues_of(name):
        if call.may(row["queue"]):
            broker.bus.wake(row["queue"])
    return json({"success": True, "consumerGroup": name, "queues": count, "subscriptionTimestamp": iso(time)})


class SeekRequest(msgspec.Struct, rename="camel"):
    """The target: the end, the beginning, or a time."""

    to_end: bool = False
    to_beginning: bool = False
    timestamp: str | None = None


async def seek(broker: Broker, call: Call) -> Response:
    """Seek a group on a queue or in one partition; leases are revoked, older acks rejected."""
    request: SeekRequest = call.body
    time = parse_time("timestamp", request.timestamp)
    wanted = [request.to_end, request.to_beginning, time is not None]
    if sum(wanted) != 1:
        raise bad_request("pass exactly one of toEnd, toBeginning and timestamp")
    to = ("end", "beginning", "time")[wanted.index(True)]
    queue, group, partition = (
        call.path["queue"],
        check_name("group", call.path["group"]),
        call.path.get("partition"),
    )
    if not await broker.store.groups.seek(queue, group, to, time, partition):
        raise not_found(
            f"queue {queue}{f' or its partition {partition}' if partition else ''} does not exist"
        )
    broker.bus.wake(queue)
    return json(
        {
            "success": True,
            "consumerGroup": group,
            "queue": queue,
            "partition": partition,
            "to": iso(time) or to,
        }
    )


_GROUPS = "/api/v1/consumer-groups"

ROUTES = [
    Route(
        "GET",
        _GROUPS,
        list_groups,
        "List consumer groups",
        Right.QUEUE_READ,
        {200: GroupList},
        query=GroupsQuery,
    ),
    Route(
        "GET",
        f"{_GROUPS}/lagging",
        lagging,
        "List lagging consumer groups",
        Right.QUEUE_READ,
        {200: LaggingGroups},
        query=LaggingQuery,
    ),
    Route(
        "GET",
        f"{_GROUPS}/:group",
        get_group,
        "Get a consumer group",
        Right.QUEUE_READ,
        {200: GroupDetail},
        query=CursorsQuery,
    ),
    Route(
        "DELETE",
        f"{_GROUPS}/:group",
        delete_group,
        "Delete a group on all queues",
        Right.QUEUE_ADMIN,
        {200: GroupDeleted},
        query=DeleteQuery,
    ),
    Route(
        "DELETE",
        f"{_GROUPS}/:group/queues/:queue",
        delete_group,
        "Delete a group on a queue",
        Right.QUEUE_ADMIN,
        {200: GroupDeleted},
        query=DeleteQuery,
    ),
    Route(
        "POST",
        f"{_GROUPS}/:group/subscription",
        set_subscription,
        "Change the start position of a group",
        Right.QUEUE_ADMIN,
        {200: Subscribed},
        body=SubscriptionRequest,
    ),
    Route(
        "POST",
        f"{_GROUPS}/:group/queues/:queue/seek",
        seek,
        "Seek a group on a queue",
        Right.QUEUE_ADMIN,
        {200: GroupMoved},
        body=SeekRequest,
    ),
    Route(
        "POST",
        f"{_GROUPS}/:group/queues/:queue/partitions/:partition/seek",
        seek,
        "Seek a group in one partition",
        Right.QUEUE_ADMIN,
        {200: GroupMoved},
        body=SeekRequest,
    ),
]
