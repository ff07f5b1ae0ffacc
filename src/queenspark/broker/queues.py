"""Queues over HTTP: configure, delete, list."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ..store.catalog import Queue
from .answers.queues import (
    Configured,
    NamespaceList,
    Overview,
    QueueDeleted,
    QueueDetail,
    QueueList,
    TaskList,
)
from .broker import Broker
from .errors import bad_request, not_found
from .http import Answer, Call, Right, Route, json
from .limits import check_name, check_queue
from .times import iso

Seconds = Annotated[int, Meta(ge=0, le=2_000_000_000)]
_TTL = 3600


class QueueOptions(msgspec.Struct, rename="camel"):
    """Options of a queue. What is not sent takes its default."""

    lease_time: Annotated[int, Meta(ge=1, le=2_000_000_000)] = 300
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
    """Refuse what cannot be done."""
    if options.encryption_enabled and not broker.store.cipher.available:
        raise bad_request(
            "encryptionEnabled needs a key: start the broker with QUEENSPARK_ENCRYPTION_KEY"
            " set to 32 bytes in base64"
        )
    if isinstance(options.dead_letter_queue, str):
        check_queue("deadLetterQueue", options.dead_letter_queue)
        if options.dead_letter_queue == queue:
            raise bad_request("deadLetterQueue must be another queue")


def columns(options: QueueOptions) -> dict[str, Any]:
    """Options as columns of the table."""
    target = options.dead_letter_queue
    # Asking for a retention time is asking for retention, unless it is switched off expressly.
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
    """All options of a queue, as the API names them."""
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


async def configure(broker: Broker, call: Call) -> Answer:
    """Create or change a queue."""
    request: ConfigureRequest = call.body
    if not request.queue:
        raise bad_request("queue is required")
    check_queue("queue", request.queue)
    for what, name in (("namespace", request.namespace), ("task", request.task)):
        if name:
            check_name(what, name)
    options = request.options or QueueOptions()
    _check_options(broker, request.queue, options)
    queue = await broker.store.queues.configure(
        request.queue, request.namespace, request.task, columns(options)
    )
    broker.bus.forget(queue.name)
    return json({
        "configured": True, "queue": queue.name, "namespace": queue.namespace, "task": queue.task,
        "options": shown_options(queue),
    })  # fmt: skip


async def delete(broker: Broker, call: Call) -> Answer:
    """Delete a queue with its messages and groups."""
    name = check_queue("queue", call.path["queue"])
    existed = await broker.store.queues.delete(name)
    broker.bus.forget(name)
    return json({"deleted": True, "queue": name, "existed": existed})


class WindowsQuery(msgspec.Struct):
    """Whether window queues of streams are listed too."""

    windows: bool = False


class ScopeQuery(WindowsQuery):
    """Which queues are listed: of a namespace or a task."""

    namespace: str | None = None
    task: str | None = None


async def described(
    broker: Broker, namespace: str | None = None, task: str | None = None, *, windows: bool = False
) -> list[dict[str, Any]]:
    """Queues with their counts; window queues only if `windows` is set."""
    store = broker.store
    queues = await store.queues.find(namespace, task, windows=windows)
    totals = await store.queues.totals()
    lags = await store.queues.lag()
    return [_described(queue, partitions, totals.get(queue.id, 0), lags) for queue, partitions in queues]


def _described(queue: Queue, partitions: int, total: int, lags: list[dict[str, Any]]) -> dict[str, Any]:
    own = [row for row in lags if row["queue_id"] == queue.id]
    processing = sum(row["processing"] for row in own)
    waiting = max((row["lag"] - row["processing"] for row in own), default=total)
    return {
        "id": str(queue.id),
        "name": queue.name,
        "namespace": queue.namespace,
        "task": queue.task,
        "priority": queue.priority,
        "createdAt": iso(queue.created_at),
        "partitions": partitions,
        "messages": {"total": total, "pending": max(0, waiting), "processing": processing},
    }


async def list_queues(broker: Broker, call: Call) -> Answer:
    """All queues."""
    query: ScopeQuery = call.query
    return json({"queues": await described(broker, query.namespace, query.task, windows=query.windows)})


async def get_queue(broker: Broker, call: Call) -> Answer:
    """One queue with its options, partitions and groups."""
    name = call.path["queue"]
    found = [pair for pair in await broker.store.queues.find(windows=True) if pair[0].name == name]
    if not found:
        raise not_found(f"queue {name} does not exist")
    queue, count = found[0]
    lags = await broker.store.queues.lag(queue)
    totals = await broker.store.queues.totals(queue)
    partitions = await broker.store.queues.partitions(queue)
    return json(
        {
            **_described(queue, count, totals.get(queue.id, 0), lags),
            "options": shown_options(queue),
            "partitions": [
                {"id": str(row["id"]), "name": row["name"], "createdAt": iso(row["created_at"])}
                for row in partitions
            ],
            "partitionCount": count,
            "consumerGroups": [
                {
                    "name": row["name"],
                    "lag": row["lag"],
                    "processing": row["processing"],
                    "oldest": iso(row["oldest"]),
                }
                for row in lags
            ],
        }
    )


async def _grouped(broker: Broker, field: str) -> list[dict[str, Any]]:
    groups: dict[str, dict[str, Any]] = {}
    for queue in await described(broker):
        if queue[field]:
            entry = groups.setdefault(
                queue[field],
                {field: queue[field], "queues": 0, "partitions": 0, "messages": {"total": 0, "pending": 0}},
            )
            entry["queues"] += 1
            entry["partitions"] += queue["partitions"]
            for count in ("total", "pending"):
                entry["messages"][count] += queue["messages"][count]
    return list(groups.values())


async def list_namespaces(broker: Broker, _: Call) -> Answer:
    """All namespaces with their counts."""
    return json({"namespaces": await _grouped(broker, "namespace")})


async def list_tasks(broker: Broker, _: Call) -> Answer:
    """All tasks with their counts."""
    return json({"tasks": await _grouped(broker, "task")})


async def overview(broker: Broker, _: Call) -> Answer:
    """Counts over everything."""
    queues = await described(broker)
    dead = sum(row["count"] for row in await broker.store.dead_letters.counts())
    return json(
        {
            "queues": len(queues),
            "partitions": sum(queue["partitions"] for queue in queues),
            "namespaces": len({queue["namespace"] for queue in queues if queue["namespace"]}),
            "tasks": len({queue["task"] for queue in queues if queue["task"]}),
            "consumerGroups": len({row["name"] for row in await broker.store.groups.find()}),
            "messages": {
                "total": sum(queue["messages"]["total"] for queue in queues),
                "pending": sum(queue["messages"]["pending"] for queue in queues),
                "processing": sum(queue["messages"]["processing"] for queue in queues),
                "deadLetter": dead,
            },
        }
    )


ROUTES = [
    Route(
        "POST",
        "/api/v1/configure",
        configure,
        "Create or change a queue",
        Right.QUEUE_ADMIN,
        {200: Configured},
        body=ConfigureRequest,
        messages={"": "queue is required", "queue": "queue is required"},
    ),
    Route(
        "GET",
        "/api/v1/resources/queues",
        list_queues,
        "All queues",
        Right.QUEUE_READ,
        {200: QueueList},
        query=ScopeQuery,
    ),
    Route(
        "GET", "/api/v1/resources/queues/:queue", get_queue, "One queue", Right.QUEUE_READ, {200: QueueDetail}
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
        "All namespaces",
        Right.QUEUE_READ,
        {200: NamespaceList},
    ),
    Route("GET", "/api/v1/resources/tasks", list_tasks, "All tasks", Right.QUEUE_READ, {200: TaskList}),
    Route(
        "GET",
        "/api/v1/resources/overview",
        overview,
        "Counts over everything",
        Right.QUEUE_READ,
        {200: Overview},
    ),
]
