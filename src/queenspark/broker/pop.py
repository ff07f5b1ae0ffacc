"""GET /api/v1/pop…: deliver messages, at once or after a wait."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from ..store.delivery import QUEUE_MODE, Batch
from ..store.headers import shown
from .broker import Broker
from .errors import bad_request
from .http import NOTHING, Call, Response, Right, Route, json
from .limits import check_lease, check_name
from .parking import Lot
from .reach import may_touch_lease
from .times import iso_us, parse_time

_AUTOPILOT_BATCH = 100
_AUTOPILOT_PARTITIONS = 8
_MOST_PARTITIONS = 1000
#: Names of subscription modes: ours, and those of Queen's clients, tests and docs.
_MODES = {
    "all": "all", "from_beginning": "all", "earliest": "all",
    "new": "new", "new-only": "new", "latest": "new",
}  # fmt: skip

Count = Annotated[int, Meta(ge=1)]


class PopQuery(msgspec.Struct, rename="camel"):
    """Options of a pop."""

    batch: Count | None = None
    wait: bool = False
    timeout: Annotated[float, Meta(ge=0)] = 30000
    consumer_group: str | None = None
    auto_ack: bool = False
    subscription_mode: str | None = None
    subscription_from: str | None = None
    partitions: Count | None = None
    namespace: str | None = None
    task: str | None = None
    autopilot: bool = False
    consumer_id: str | None = None


class PoppedMessage(msgspec.Struct, rename="camel", gc=False):
    """A delivered message."""

    id: str
    transaction_id: str
    trace_id: str | None
    queue: str
    partition: str
    partition_id: str
    data: Raw
    retry_count: int
    priority: int
    created_at: str
    consumer_group: str | None
    lease_id: str
    producer_sub: str | None = None
    headers: dict[str, str] | UnsetType = UNSET


class Popped(msgspec.Struct, rename="camel"):
    """The response to a pop."""

    queue: str
    partition: str
    partition_id: str
    lease_id: str
    lease_timeout_ms: int
    consumer_group: str | None
    partitions_claimed: int
    messages: list[PoppedMessage]
    success: bool = True
    autopilot: dict[str, int] | None = None


async def pop_queue(broker: Broker, call: Call) -> Response:
    """Pop from one queue, or one of its partitions."""
    queue = check_name("Queue", call.path["queue"])
    partition = call.path.get("partition")
    return await _pop(broker, call, queue, partition)


async def pop_any(broker: Broker, call: Call) -> Response:
    """Pop from any queue of a namespace or task, by priority."""
    query: PopQuery = call.query
    if query.namespace is None and query.task is None:
        raise bad_request("namespace or task is required, or pop from /api/v1/pop/queue/:queue")
    return await _pop(broker, call, None, None)


async def _pop(broker: Broker, call: Call, queue: str | None, partition: str | None) -> Response:
    query: PopQuery = call.query
    settings = broker.settings
    call.check_limit()
    broker.metrics.pop_requests.inc()
    batch, partitions = _sizes(query, settings.max_batch)
    mode, start = _start(query)
    group = check_name("consumerGroup", query.consumer_group) if query.consumer_group else QUEUE_MODE
    holder = check_name("consumerId", query.consumer_id) if query.consumer_id else None
    deliverer = broker.store.deliverer
    gone = call.watch()

    async def queues() -> list[str]:
        if queue is not None:
            return [queue]
        names = await broker.store.queues.names(query.namespace, query.task)
        return [name for name in names if call.may(name)]

    async def once() -> Batch | None:
        call.check_known()
        if broker.modes.pop or gone.done():
            return None
        names = await queues()
        for name in names:
            found = await deliverer.pop(
                name, group, batch=batch, partitions=partitions, partition=partition,
                auto_ack=query.auto_ack, mode=mode, start=start, holder=holder,
                is_wanted=call.is_waiting,
            )  # fmt: skip
            if found is not None:
                return found
        return None

    async def next_check() -> tuple[bool, float | None]:
        checks = [await deliverer.next_check(name, group, partition) for name in await queues()]
        waits = [seconds for _, seconds in checks if seconds is not None]
        return any(above for above, _ in checks), min(waits, default=None)

    visible = call.visible() if queue is None else None
    lot = Lot(
        queue,
        (query.namespace, query.task) if queue is None else (None, None),
        group,
        partition,
        None if visible is None else tuple(visible),
    )
    version = broker.parking.version(lot)
    known = queue is not None and broker.store.catalog.known_group(queue, group) is not None
    found = None
    if not (query.wait and known and broker.parking.is_drained(lot)):
        found = await once()
    if found is None and query.wait:
        seconds = min(query.timeout / 1000, settings.max_wait_seconds)
        found = await broker.parking.wait(lot, version, once, next_check, seconds, gone)
    if found is None:
        return NOTHING
    if not query.auto_ack and await call.has_left():
        # The client disconnected before the first byte of its response.
        broker.background(broker.give_back(found))
        return NOTHING
    call.count_delivered(len(found.messages))
    return json(_popped(broker, query, found, group, batch, partitions))


def _sizes(query: PopQuery, most: int) -> tuple[int, int]:
    batch = query.batch or (_AUTOPILOT_BATCH if query.autopilot else 1)
    partitions = query.partitions or (_AUTOPILOT_PARTITIONS if query.autopilot else 1)
    if batch > most:
        raise bad_request(f"batch is {batch}; the limit is {most}")
    return batch, min(partitions, _MOST_PARTITIONS)


def _start(query: PopQuery) -> tuple[str, datetime | None]:
    mode = _MODES.get(query.subscription_mode or "all")
    if mode is None:
        raise bad_request(f"subscriptionMode is {query.subscription_mode!r}; use one of {', '.join(_MODES)}")
    if query.subscription_from == "now":
        return "new", None
    return mode, parse_time("subscriptionFrom", query.subscription_from)


def _popped(broker: Broker, query: PopQuery, found: Batch, group: str, batch: int, partitions: int) -> Popped:
    queue = found.queue
    lease_id = "" if query.auto_ack else str(found.lease_id)
    shown_group = None if group == QUEUE_MODE else group
    priority = queue.priority
    messages = []
    for message in found.messages:
        headers, producer = shown(message.headers)
        messages.append(
            PoppedMessage(
                str(message.id),
                message.transaction_id,
                message.trace_id,
                queue.name,
                message.partition,
                str(message.partition_id),
                Raw(message.payload.encode()),
                message.retries,
                priority,
                iso_us(message.created_us),
                shown_group,
                lease_id,
                producer,
                headers or UNSET,
            )
        )
    broker.metrics.pops.inc(len(messages))
    broker.activity.popped(queue.name, group, len(messages), auto_ack=query.auto_ack)
    expired = {message.partition_id for message in found.messages if message.lease_expired}
    if expired:
        broker.metrics.lease_expiries.inc(len(expired))
    first = messages[0]
    popped = Popped(
        queue.name,
        first.partition,
        first.partition_id,
        lease_id,
        queue.lease_seconds * 1000,
        shown_group,
        len({message.partition_id for message in messages}),
        messages,
    )
    if query.autopilot:
        popped.autopilot = {"partitions": partitions, "batch": batch, "waitMs": 0}
    return popped


class ExtendRequest(msgspec.Struct):
    """The new lease time from now; by default the queue's."""

    seconds: Annotated[int, Meta(ge=1)] | None = None


class LeaseExtended(msgspec.Struct, rename="camel"):
    """The new end of a lease, three times under the names that clients expect."""

    lease_id: str
    success: bool
    renewed: int
    new_expires_at: str
    expires_at: str
    lease_expires_at: str = msgspec.field(name="lease_expires_at")


class LeaseNotFound(msgspec.Struct, rename="camel"):
    """An error, with the fields that clients expect in a success."""

    error: str
    lease_id: str
    code: Literal["not_found"] = "not_found"
    retryable: bool = False
    success: bool = False
    renewed: int = 0


async def extend(broker: Broker, call: Call) -> Response:
    """Extend a lease."""
    text = call.path["leaseId"]
    try:
        lease_id = UUID(text)
    except ValueError:
        lease_id = None
    seconds = call.body.seconds
    if seconds is not None:
        check_lease("seconds", seconds, "seconds")
    found = None
    if lease_id is not None and await may_touch_lease(broker, call, lease_id):
        found = await broker.store.deliverer.extend(lease_id, seconds)
    if found is None:
        return json(LeaseNotFound("Lease not found or expired", text), 404)
    cursors, expires_at = found
    when = iso_us(int(expires_at.timestamp() * 1_000_000))
    return json(LeaseExtended(text, True, cursors, when, when, when))


ROUTES = [
    Route(
        "GET",
        "/api/v1/pop/queue/:queue",
        pop_queue,
        "Pop from a queue",
        Right.QUEUE_CONSUME,
        {200: Popped, 204: None},
        query=PopQuery,
    ),
    Route(
        "GET",
        "/api/v1/pop/queue/:queue/partition/:partition",
        pop_queue,
        "Pop from a partition",
        Right.QUEUE_CONSUME,
        {200: Popped, 204: None},
        query=PopQuery,
    ),
    Route(
        "GET",
        "/api/v1/pop",
        pop_any,
        "Pop from any queue of a namespace or task",
        Right.QUEUE_CONSUME,
        {200: Popped, 204: None},
        query=PopQuery,
    ),
    Route(
        "POST",
        "/api/v1/lease/:leaseId/extend",
        extend,
        "Extend a lease",
        Right.QUEUE_CONSUME,
        {200: LeaseExtended, 404: LeaseNotFound},
        body=ExtendRequest,
        empty_body=True,
    ),
]
