"""Health, metrics, status and maintenance over HTTP."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from .. import __version__
from ..store.errors import StoreError
from .broker import Broker
from .errors import not_found
from .groups import GroupsQuery
from .http import Call, Response, Right, Route, json
from .messages import BrowseQuery, browse
from .paging import PageQuery, page_of, paged
from .queues import QueuesQuery, get_queue, list_queues
from .responses.messages import MessageList
from .responses.queues import QueueDetail, QueueList
from .responses.system import Analytics, BrokerMetrics, Healthy, Maintenance, SystemStatus, Unhealthy
from .times import iso


async def health(broker: Broker, _: Call) -> Response:
    """200 while the database is available, else 503."""
    try:
        row = await broker.store.database.row("ping")
    except StoreError as error:
        body = {
            "status": "unhealthy",
            "database": "disconnected",
            "version": __version__,
            # A public route: do not disclose the database's address.
            "error": str(error) if broker.gate is None else "the database is not available",
        }
        return json(body, 503)
    return json({
        "status": "healthy", "database": "connected", "version": __version__,
        "postgres": row[0] if row else None, "uptimeSeconds": round(time.time() - broker.started, 1),
    })  # fmt: skip


def _gauges(broker: Broker) -> None:
    broker.metrics.parked.set(len(broker.parking))
    broker.metrics.pool_used.set(broker.store.database.in_use())


async def metrics(broker: Broker, _: Call) -> Response:
    """Counters and gauges as JSON."""
    _gauges(broker)
    return json({"uptimeSeconds": round(time.time() - broker.started, 1), "metrics": broker.metrics.values()})


async def prometheus(broker: Broker, call: Call) -> Response:
    """Counters and gauges for Prometheus."""
    caller = call.caller

    async def text() -> bytes:
        _gauges(broker)
        return broker.metrics.text(caller)

    body: bytes = await broker.cache.get(f"prometheus {caller.role} {caller.scopes}", text)
    return Response(200, body, b"text/plain; version=0.0.4; charset=utf-8")


async def _summary(broker: Broker) -> dict[str, Any]:
    totals = await broker.totals()
    return {
        "version": __version__,
        "queues": totals["queues"],
        "partitions": totals["partitions"],
        "messages": {
            "total": totals["messages"],
            "pending": totals["pending"],
            "processing": totals["processing"],
        },
        "deadLetters": totals["dead_letters"],
        "countedAt": totals["countedAt"],
        "safeTime": iso(await broker.store.clock.safe_time()),
        "horizonHeldBy": await broker.store.clock.holder(),
        "staged": await broker.store.maintenance.staged(),
    }


async def status(broker: Broker, _: Call) -> Response:
    """Return a summary of the system."""
    return json({
        **await broker.cache.get("status", lambda: _summary(broker)),
        "maintenance": {"push": broker.modes.push, "pop": broker.modes.pop},
        "parkedPolls": len(broker.parking),
    })  # fmt: skip


async def status_messages(broker: Broker, call: Call) -> Response:
    """List the messages of one queue."""
    if await broker.store.catalog.queue(call.path["queue"]) is None:
        raise not_found(f"queue {call.path['queue']} does not exist")
    call.query.queue = call.path["queue"]
    return await browse(broker, call)


async def _lags(broker: Broker, query: GroupsQuery, visible: list[str] | None) -> dict[str, Any]:
    counted_at = await broker.counted_at()
    rows, total = await broker.store.groups.page(
        page_of(query, "queue", "lag", "lagSeconds", visible=visible), queue=query.queue
    )
    lags = [
        {
            "queue": row["queue"],
            "consumerGroup": row["name"],
            "lag": row["lag"],
            "processing": row["processing"],
            "oldestUnackedAt": iso(row["oldest"]) if row["lag"] else None,
        }
        for row in rows
    ]
    return {**paged("groups", lags, total, query), "countedAt": counted_at}


async def analytics(broker: Broker, call: Call) -> Response:
    """Return the lag of a page of groups, and this broker's counters."""
    visible = call.visible(Right.QUEUE_READ)
    shown = await broker.cache.get(f"lags {call.query} {visible}", lambda: _lags(broker, call.query, visible))
    return json({**shown, "metrics": broker.metrics.values()})


class MaintenanceRequest(msgspec.Struct):
    """On or off."""

    enabled: bool


async def _modes(broker: Broker, **more: Any) -> Response:
    broker.modes = await broker.store.maintenance.modes()
    body = {
        "maintenanceMode": broker.modes.push,
        "popMaintenanceMode": broker.modes.pop,
        "enabled": broker.modes.push,
    }
    return json({**body, "staged": await broker.store.maintenance.staged(), **more})


async def get_maintenance(broker: Broker, _: Call) -> Response:
    """The maintenance modes."""
    return await _modes(broker)


async def set_maintenance(broker: Broker, call: Call) -> Response:
    """Switch push maintenance; when it ends, staged messages enter the log."""
    appended = await broker.store.maintenance.set_push(call.body.enabled)
    broker.bus.modes_changed()
    if appended:
        broker.parking.wake(None)
    return await _modes(broker, success=True, appended=appended)


async def get_pop_maintenance(broker: Broker, _: Call) -> Response:
    """Return whether pops are disabled."""
    return await _modes(broker, enabled=(await broker.store.maintenance.modes()).pop)


async def set_pop_maintenance(broker: Broker, call: Call) -> Response:
    """Switch pop maintenance."""
    await broker.store.maintenance.set_pop(call.body.enabled)
    broker.bus.modes_changed()
    return await _modes(broker, success=True, enabled=call.body.enabled)


_ENABLED = {"enabled": "enabled must be true or false", "": "enabled must be true or false"}

ROUTES = [
    Route(
        "GET",
        "/health",
        health,
        "Health of broker and database",
        Right.PUBLIC,
        {200: Healthy, 503: Unhealthy},
    ),
    Route("GET", "/metrics", metrics, "Counters and gauges as JSON", Right.SYSTEM_READ, {200: BrokerMetrics}),
    Route(
        "GET",
        "/metrics/prometheus",
        prometheus,
        "Counters and gauges for Prometheus",
        Right.SYSTEM_READ,
        {200: str},
    ),
    Route("GET", "/api/v1/status", status, "System summary", Right.SYSTEM_READ, {200: SystemStatus}),
    Route(
        "GET",
        "/api/v1/status/queues",
        list_queues,
        "List queues",
        Right.QUEUE_READ,
        {200: QueueList},
        query=QueuesQuery,
    ),
    Route(
        "GET",
        "/api/v1/status/queues/:queue",
        get_queue,
        "Get a queue",
        Right.QUEUE_READ,
        {200: QueueDetail},
        query=PageQuery,
    ),
    Route(
        "GET",
        "/api/v1/status/queues/:queue/messages",
        status_messages,
        "List messages of a queue",
        Right.QUEUE_READ,
        {200: MessageList},
        query=BrowseQuery,
    ),
    Route(
        "GET",
        "/api/v1/status/analytics",
        analytics,
        "List the lag of consumer groups",
        Right.SYSTEM_READ,
        {200: Analytics},
        query=GroupsQuery,
    ),
    Route(
        "GET",
        "/api/v1/system/maintenance",
        get_maintenance,
        "The maintenance modes",
        Right.SYSTEM_READ,
        {200: Maintenance},
    ),
    Route(
        "POST",
        "/api/v1/system/maintenance",
        set_maintenance,
        "Turn push maintenance on or off",
        Right.SYSTEM_ADMIN,
        {200: Maintenance},
        body=MaintenanceRequest,
        messages=_ENABLED,
    ),
    Route(
        "GET",
        "/api/v1/system/maintenance/pop",
        get_pop_maintenance,
        "Whether pop maintenance is on",
        Right.SYSTEM_READ,
        {200: Maintenance},
    ),
    Route(
        "POST",
        "/api/v1/system/maintenance/pop",
        set_pop_maintenance,
        "Turn pop maintenance on or off",
        Right.SYSTEM_ADMIN,
        {200: Maintenance},
        body=MaintenanceRequest,
        messages=_ENABLED,
    ),
]
