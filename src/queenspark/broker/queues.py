"""Queues over HTTP: configure, delete, list."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ..store.catalog import Queue, to_queue
from ..store.page import Page
from .activity import shown_rates
from .broker import Broker
from .errors import bad_request, not_found
from .http import Call, Response, Right, Route, json
from .limits import check_lease, check_name, check_queue
from .paging import PageQuery, page_of, paged
from .responses.queues import (
    Configured,
    NamespaceList,
    Overview,
    QueueDeleted,
    QueueDetail,
    QueueList,
    TaskList,
)
from .times import iso

Seconds = Annotated[int, Meta(ge=0, le=2_000_000_000)]
_TTL = 3600


class QueueOptions(msgspec.Struct, rename="camel"):
    """Options of a queue. Omitted ones get their defaults."""

    lease_time: Annotated[int, Meta(ge=1)] = 300
    retry_limit: Annotated[int, Meta(ge=0, le=1_000_000)] = 3
    retry_delay: Annotated[int, Meta(ge=0, le=2_000_000_000)] = 1000
    ttl: Seconds | None = None
    max_size: Annotated[int, Meta(ge=0, le=2**62)] = 0
    priority: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)] = 0
    delayed_processing: Seconds = 0
    window_buffer: Seconds = 0
    retention_seconds: Seconds = 0
    completed_retention_seconds: Seconds = 0
    retention_enabled: bool | None = None
    encryption_enabled: bool = False
    dead_letter_queue: bool | str | None = None
    dlq_after_max_retries: bool | None = None
    max_wait_time_seconds: Seconds = 0


class ConfigureRequest(msgspec.Struct):
    """A queue and its options."""

    queue: str
    namespace: str | None = None
    task: str | None = None
    options: QueueOptions | None = None


def _check_options(broker: Broker, queue: str, options: QueueOptions) -> None:
    """Reject invalid options."""
    check_lease("leaseTime", options.lease_time, "seconds")
    if options.encryption_enabled and not broker.store.cipher.available:
        raise bad_request(
            "encryptionEnabled requires a key: start the broker with QUEENSPARK_ENCRYPTION_KEY"
            " set to 32 bytes in base64"
        )
    if isinstance(options.dead_letter_queue, str):
        check_queue("deadLetterQueue", options.dead_letter_queue)
        if options.dead_letter_queue == queue:
            raise bad_request("deadLetterQueue must differ from the queue itself")


async def _check_jobs(broker: Broker, name: str, options: QueueOptions) -> None:
    """Reject options that queues of jobs cannot have: encryption, or being a dead-letter target."""
    target = options.dead_letter_queue
    if isinstance(target, str) and await _has_rows(broker, target):
        raise bad_request(
            f"deadLetterQueue: {target} is the output queue of a job, which only the job can push to"
        )
    if options.encryption_enabled and await _has_rows(broker, name):
        raise bad_request(
            f"encryptionEnabled: queue {name} is the output queue of a job, whose rows are not encrypted"
        )


async def _has_rows(broker: Broker, name: str) -> bool:
    queue = await broker.store.catalog.queue(name)
    return queue is not None and queue.has_rows


def columns(options: QueueOptions) -> dict[str, Any]:
    """Convert options to table columns."""
    target = options.dead_letter_queue
    # A retention time implies retention, unless it is explicitly disabled.
    retention = options.retention_enabled
    if retention is None:
        retention = bool(options.retention_seconds or options.completed_retention_seconds)
    return {
        "lease_seconds": options.lease_time,
        "retry_limit": options.retry_limit,
        "retry_delay_ms": options.retry_delay,
        "ttl_seconds": options.ttl or None,
        "max_size": options.max_size,
        "priority": options.priority,
        "delayed_seconds": options.delayed_processing,
        "window_buffer_seconds": options.window_buffer,
        "retention_enabled": retention,
        "retention_seconds": options.retention_seconds,
        "completed_retention_seconds": options.completed_retention_seconds,
        "encryption_enabled": options.encryption_enabled,
        "dead_letters_enabled": target is not False and options.dlq_after_max_retries is not False,
        "dead_letter_queue": target if isinstance(target, str) else None,
        "max_wait_seconds": options.max_wait_time_seconds,
    }


def shown_options(queue: Queue) -> dict[str, Any]:
    """All options of a queue, as shown by the API."""
    return {
        "leaseTime": queue.lease_seconds,
        "retryLimit": queue.retry_limit,
        "retryDelay": queue.retry_delay_ms,
        "ttl": queue.ttl_seconds or _TTL,
        "maxSize": queue.max_size,
        "priority": queue.priority,
        "delayedProcessing": queue.delayed_seconds,
        "windowBuffer": queue.window_buffer_seconds,
        "retentionSeconds": queue.retention_seconds,
        "completedRetentionSeconds": queue.completed_retention_seconds,
        "retentionEnabled": queue.retention_enabled,
        "encryptionEnabled": queue.encryption_enabled,
        "deadLetterQueue": queue.dead_letter_queue or queue.dead_letters_enabled,
        "dlqAfterMaxRetries": queue.dead_letters_enabled,
        "maxWaitTimeSeconds": queue.max_wait_seconds,
    }


async def configure(broker: Broker, call: Call) -> Response:
    """Create or reconfigure a queue."""
    request: ConfigureRequest = call.body
    if not request.queue:
        raise bad_request("queue is required")
    check_queue("queue", request.queue)
    call.need_queue(request.queue)
    call.acted_on = request.queue
    for what, name in (("namespace", request.namespace), ("task", request.task)):
        if name:
            check_name(what, name)
    options = request.options or QueueOptions()
    _check_options(broker, request.queue, options)
    if isinstance(options.dead_letter_queue, str):
        call.need_queue(options.dead_letter_queue)
    await _check_jobs(broker, request.queue, options)
    queue = await broker.store.queues.configure(
        request.queue, request.namespace, request.task, columns(options)
    )
    broker.bus.forget(queue.name)
    return json({
        "configured": True, "queue": queue.name, "namespace": queue.namespace, "task": queue.task,
        "options": shown_options(queue),
    })  # fmt: skip


async def delete(broker: Broker, call: Call) -> Response:
    """Delete a queue with its messages and groups."""
    name = check_queue("queue", call.path["queue"])
    existed = await broker.store.queues.delete(name)
    broker.bus.forget(name)
    return json({"deleted": True, "queue": name, "existed": existed})


class QueuesQuery(PageQuery):
    """Filters on the queues."""

    namespace: str | None = None
    task: str | None = None
    windows: bool = False


_SORTS = (
    "namespace", "task", "priority", "createdAt", "partitions", "messages", "pending", "processing",
    "pushedPerSecond", "poppedPerSecond", "ackedPerSecond",
)  # fmt: skip


def _described(row: dict[str, Any], rates: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": str(row["id"]),
        "name": row["name"],
        "namespace": row["namespace"],
        "task": row["task"],
        "priority": row["priority"],
        "createdAt": iso(row["created_at"]),
        "partitions": row["partitions"],
        "messages": {"total": row["messages"], "pending": row["pending"], "processing": row["processing"]},
        "rates": shown_rates(rates),
    }


async def list_queues(broker: Broker, call: Call) -> Response:
    """List the queues with their counts."""
    query: QueuesQuery = call.query
    counted_at = await broker.counted_at()
    rows, total = await broker.store.queues.page(
        page_of(query, *_SORTS, visible=call.visible()),
        windows=query.windows,
        namespace=query.namespace,
        task=query.task,
    )
    rates = await broker.store.rates.of_queues([row["id"] for row in rows])
    shown = paged("queues", [_described(row, rates[row["id"]]) for row in rows], total, query)
    return json({**shown, "countedAt": counted_at})


async def get_queue(broker: Broker, call: Call) -> Response:
    """Return one queue with its options, groups and a page of its partitions."""
    name = call.path["queue"]
    page = page_of(call.query, "createdAt", visible=None)
    counted_at = await broker.counted_at()
    rows, _ = await broker.store.queues.page(Page(1), windows=True, name=name)
    if not rows:
        raise not_found(f"queue {name} does not exist")
    row, queue = rows[0], to_queue(rows[0])
    partitions = await broker.store.queues.partitions(queue, page)
    groups, _ = await broker.store.groups.page(Page(), queue_ids=[queue.id])
    rates = await broker.store.rates.of_queues([queue.id])
    group_rates = await broker.store.rates.of_groups(groups)
    return json(
        {
            **_described(row, rates[queue.id]),
            "options": shown_options(queue),
            "partitions": [
                {"id": str(each["id"]), "name": each["name"], "createdAt": iso(each["created_at"])}
                for each in partitions
            ],
            "partitionCount": row["partitions"],
            "consumerGroups": [
                {
                    "name": each["name"],
                    "lag": each["lag"],
                    "processing": each["processing"],
                    "oldest": iso(each["oldest"]),
                    "rates": shown_rates(group_rates[each["id"]]),
                }
                for each in groups
            ],
            "countedAt": counted_at,
        }
    )


async def _list_scopes(broker: Broker, call: Call, of: str) -> Response:
    query: PageQuery = call.query
    counted_at = await broker.counted_at()
    rows, total = await broker.store.counts.scopes(of, page_of(query, "messages", visible=call.visible()))
    scopes = [
        {
            of: row["name"],
            "queues": row["queues"],
            "partitions": row["partitions"],
            "messages": {"total": row["messages"], "pending": row["pending"]},
        }
        for row in rows
    ]
    return json({**paged(f"{of}s", scopes, total, query), "countedAt": counted_at})


async def list_namespaces(broker: Broker, call: Call) -> Response:
    """List the namespaces with their counts."""
    return await _list_scopes(broker, call, "namespace")


async def list_tasks(broker: Broker, call: Call) -> Response:
    """List the tasks with their counts."""
    return await _list_scopes(broker, call, "task")


async def overview(broker: Broker, _: Call) -> Response:
    """Return counts over the whole system."""
    totals = await broker.totals()
    return json(
        {
            **{name: totals[name] for name in ("queues", "partitions", "namespaces", "tasks")},
            "consumerGroups": totals["groups"],
            "messages": {
                "total": totals["messages"],
                "pending": totals["pending"],
                "processing": totals["processing"],
                "deadLetter": totals["dead_letters"],
            },
            "countedAt": totals["countedAt"],
        }
    )


ROUTES = [
    Route(
        "POST",
        "/api/v1/configure",
        configure,
        "Create or change a queue",
        Right.QUEUE_CONFIGURE,
        {200: Configured},
        body=ConfigureRequest,
        messages={"": "queue is required", "queue": "queue is required"},
    ),
    Route(
        "GET",
        "/api/v1/resources/queues",
        list_queues,
        "List queues",
        Right.QUEUE_READ,
        {200: QueueList},
        query=QueuesQuery,
    ),
    Route(
        "GET",
        "/api/v1/resources/queues/:queue",
        get_queue,
        "Get a queue",
        Right.QUEUE_READ,
        {200: QueueDetail},
        query=PageQuery,
    ),
    Route(
        "DELETE",
        "/api/v1/resources/queues/:queue",
        delete,
        "Delete a queue",
        Right.QUEUE_ADMIN,
        {200: QueueDeleted},
    ),
    Route(
        "GET",
        "/api/v1/resources/namespaces",
        list_namespaces,
        "List namespaces",
        Right.QUEUE_READ,
        {200: NamespaceList},
        query=PageQuery,
    ),
    Route(
        "GET",
        "/api/v1/resources/tasks",
        list_tasks,
        "List tasks",
        Right.QUEUE_READ,
        {200: TaskList},
        query=PageQuery,
    ),
    Route(
        "GET",
        "/api/v1/resources/overview",
        overview,
        "Totals over all queues",
        Right.SYSTEM_READ,
        {200: Overview},
    ),
]
