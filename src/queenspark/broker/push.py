"""POST /api/v1/push."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Literal

import msgspec

from ..store.push import Item, Pushed, complete
from .broker import Broker
from .errors import bad_request
from .http import Call, Response, Right, Route, json
from .limits import check_headers, check_ids, check_name, check_payloads, check_queue

MESSAGES = {
    "": "items array is required",
    "items": "items array is required",
    "queue": "Queue must be a string",
    "partition": "Partition must be a string",
    "transactionId": "TransactionId must be a string",
    "traceId": "TraceId must be a string",
    "headers": "headers must be an object of strings: write other values as strings",
}


class PushRequest(msgspec.Struct):
    """Messages to push, in order."""

    items: list[Item]


class PushedItem(msgspec.Struct, gc=False):
    """The result of one item."""

    index: int
    transaction_id: str
    status: Literal["queued", "duplicate"]
    message_id: str
    partition_id: str
    trace_id: str | None
    queueName: str  # noqa: N815 - the wire name


def check_count(broker: Broker, count: int) -> None:
    """Check the number of items of a request; raise 400."""
    if count > broker.settings.max_batch:
        raise bad_request(
            f"items has {count} entries; the limit is {broker.settings.max_batch}: send several batches"
        )


def check_items(broker: Broker, items: Sequence[Item], body_bytes: int) -> None:
    """Validate items."""
    settings = broker.settings
    check_count(broker, len(items))
    complete(items)
    for queue, partition in {item.target for item in items}:
        check_queue("Queue", queue)
        check_name("Partition", partition)
    check_ids("TransactionId", [item.transaction_id or "" for item in items])
    check_ids("TraceId", [item.trace_id for item in items if item.trace_id])
    check_headers([item.headers for item in items])
    check_payloads(
        [item.payload for item in items], body_bytes, settings.max_item_bytes, settings.max_json_depth
    )


def admit_items(call: Call, items: Sequence[Item]) -> None:
    """Check that the caller may push this many items, and stamp them with the producer."""
    if not items:
        return
    caller = call.caller
    call.need(Right.QUEUE_PUSH)
    if caller.scopes is not None:
        for queue in {item.queue for item in items}:
            call.need_queue(queue, Right.QUEUE_PUSH)
    if caller.meter is not None:
        caller.meter.messages(len(items))
    if (stamp := caller.stamp) is not None:
        for item in items:
            item.headers = {**item.headers, **stamp} if item.headers else stamp


def pushed_items(items: Sequence[Item], results: Sequence[Pushed]) -> list[PushedItem]:
    """Build the response for each item."""
    return [
        PushedItem(
            index,
            item.transaction_id or "",
            "duplicate" if result.duplicate else "queued",
            str(result.id),
            str(result.partition_id),
            item.trace_id,
            item.queue,
        )
        for index, (item, result) in enumerate(zip(items, results, strict=True))
    ]


async def push(broker: Broker, call: Call) -> Response:
    """Append messages; responds once they are on disk."""
    started = time.perf_counter()
    items: list[Item] = call.body.items
    if not items:
        return json([], 201)
    check_items(broker, items, call.body_bytes)
    admit_items(call, items)
    results = await broker.appender.append(items, call.body_bytes)
    metrics = broker.metrics
    duplicates = sum(result.duplicate for result in results)
    metrics.push_requests.inc()
    metrics.pushes.inc(len(results) - duplicates)
    if duplicates:
        metrics.duplicates.inc(duplicates)
    broker.activity.pushed(items, results)
    metrics.push_seconds.observe(time.perf_counter() - started)
    return json(pushed_items(items, results), 201)


ROUTES = [
    Route(
        "POST",
        "/api/v1/push",
        push,
        "Append messages to queues",
        Right.QUEUE_PUSH,
        {201: list[PushedItem]},
        body=PushRequest,
        messages=MESSAGES,
    )
]
