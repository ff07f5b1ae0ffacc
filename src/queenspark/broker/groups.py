"""Consumer groups over HTTP: list, lag, seek, delete."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from .broker import Broker
from .errors import bad_request, not_found
from .http import Answer, Call, Route, json
from .limits import check_name
from .times import iso, parse_time


async def _described(
    broker: Broker, name: str | None = None, queue: str | None = None
) -> list[dict[str, Any]]:
    lags = {row["id"]: row for row in await broker.store.queues.lag()}
    now = datetime.now(UTC)
    shown = []
    for row in await broker.store.groups.find(name, queue):
        lag = lags.get(row["id"], {"lag": 0, "processing": 0, "oldest": None})
        oldest = lag["oldest"] if lag["lag"] else None
        shown.append({
            "name": row["name"],
            "consumerGroup": row["name"],
            "queue": row["queue"],
            "queueName": row["queue"],
            "subscriptionMode": row["mode"],
            "createdAt": iso(row["created_at"]),
            "partitions": row["places"],
            "activeLeases": row["leases"],
            "lag": lag["lag"],
            "processing": lag["processing"],
            "oldestUnackedAt": iso(oldest),
            "lagSeconds": max(0.0, (now - oldest).total_seconds()) if oldest else 0.0,
            "lastAckedAt": iso(row["acked_at"]),
        })  # fmt: skip
    return shown


async def list_groups(broker: Broker, _: Call) -> Answer:
    """All groups, one entry for each queue that a group reads."""
    return json({"consumerGroups": await _described(broker)})


class LaggingQuery(msgspec.Struct, rename="camel"):
    """What counts as lagging."""

    min_lag_seconds: float = 3600


async def lagging(broker: Broker, call: Call) -> Answer:
    """Groups whose oldest unanswered message is older than minLagSeconds."""
    groups = [
        group
        for group in await _described(broker)
        if group["lag"] and group["lagSeconds"] >= call.query.min_lag_seconds
    ]
    return json({"consumerGroups": groups, "minLagSeconds": call.query.min_lag_seconds})


async def get_group(broker: Broker, call: Call) -> Answer:
    """One group with its queues and partitions."""
    name = call.path["group"]
    groups = await _described(broker, name)
    if not groups:
        raise not_found(f"consumer group {name} does not exist")
    for group, row in zip(groups, await broker.store.groups.find(name), strict=True):
        group["places"] = [
            {
                "partition": place["partition"],
                "partitionId": str(place["partition_id"]),
                "handedOut": place["pending"],
                "leased": place["leased"],
                "leaseExpiresAt": iso(place["lease_expires_at"]) if place["leased"] else None,
                "leaseHolder": place["lease_holder"],
                "leasedAt": iso(place["leased_at"]),
                "availableAt": iso(place["available_at"]),
                "lastAckedAt": iso(place["acked_at"]),
            }
            for place in await broker.store.groups.places(row["id"])
        ]
    return json({"name": name, "lag": sum(group["lag"] for group in groups), "queues": groups})


class DeleteQuery(msgspec.Struct, rename="camel"):
    """Whether to forget where the group begins, too."""

    delete_metadata: bool = True


async def delete_group(broker: Broker, call: Call) -> Answer:
    """Delete a group, on one queue or on all."""
    name, queue = call.path["group"], call.path.get("queue")
    affected = [row["queue"] for row in await broker.store.groups.find(name, queue)]
    count = await broker.store.groups.delete(name, queue, keep_start=not call.query.delete_metadata)
    for known in affected:
        broker.bus.forget(known)
    return json(
        {"success": True, "consumerGroup": name, "queue": queue, "deleted": count > 0, "count": count}
    )


class SubscriptionRequest(msgspec.Struct, rename="camel"):
    """Where the group begins in partitions that it has not read yet."""

    subscription_timestamp: str


async def set_subscription(broker: Broker, call: Call) -> Answer:
    """Change where a group begins."""
    time = parse_time("subscriptionTimestamp", call.body.subscription_timestamp)
    if time is None:
        raise bad_request("subscriptionTimestamp is required")
    name = call.path["group"]
    count = await broker.store.groups.set_start(name, time)
    if not count:
        raise not_found(f"consumer group {name} does not exist")
    for row in await broker.store.groups.find(name):
        broker.bus.wake(row["queue"])
    return json({"success": True, "consumerGroup": name, "queues": count, "subscriptionTimestamp": iso(time)})


class SeekRequest(msgspec.Struct, rename="camel"):
    """Where to: the end, the beginning, or a time."""

    to_end: bool = False
    to_beginning: bool = False
    timestamp: str | None = None


async def seek(broker: Broker, call: Call) -> Answer:
    """Move a group on a queue or in one partition; leases are revoked, older acks refused."""
    request: SeekRequest = call.body
    time = parse_time("timestamp", request.timestamp)
    wanted = [request.to_end, request.to_beginning, time is not None]
    if sum(wanted) != 1:
        raise bad_request("give one of toEnd, toBeginning and timestamp")
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
    Route("GET", _GROUPS, list_groups, "All consumer groups"),
    Route("GET", f"{_GROUPS}/lagging", lagging, "Groups that lag behind", query=LaggingQuery),
    Route("GET", f"{_GROUPS}/:group", get_group, "One consumer group"),
    Route("DELETE", f"{_GROUPS}/:group", delete_group, "Delete a group everywhere", query=DeleteQuery),
    Route(
        "DELETE",
        f"{_GROUPS}/:group/queues/:queue",
        delete_group,
        "Delete a group on a queue",
        query=DeleteQuery,
    ),
    Route(
        "POST",
        f"{_GROUPS}/:group/subscription",
        set_subscription,
        "Change where a group begins",
        body=SubscriptionRequest,
    ),
    Route("POST", f"{_GROUPS}/:group/queues/:queue/seek", seek, "Move a group on a queue", body=SeekRequest),
    Route(
        "POST",
        f"{_GROUPS}/:group/queues/:queue/partitions/:partition/seek",
        seek,
        "Move a group in a partition",
        body=SeekRequest,
    ),
]
