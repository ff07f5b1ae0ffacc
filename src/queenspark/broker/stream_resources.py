"""GET /api/v1/resources/streams…: list, inspect and delete streams; progress, late and dead records."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from ..formats.definition import shown
from ..store.definitions import STREAMS_QUERY, Body, spec_of
from ..store.page import Page
from ..store.streams import Stream
from .activity import shown_rates
from .broker import Broker
from .http import Call, Response, Right, Route, json
from .paging import OffsetQuery, PageQuery, page_of, paged
from .reach import stream_name
from .responses.streams import (
    DeadRecords,
    LateRecords,
    StreamConsumers,
    StreamDeleted,
    StreamDetail,
    StreamList,
    StreamStats,
)
from .streams import find_stream
from .times import iso
from .window import shown_time

_MOST_GROUPS = 10_000  # over all streams of a page
_SORTS = (
    "namespace", "createdAt", "updatedAt", "watermark", "openWindows", "sealedWindows", "late", "dropped",
    "dead", "rate", "lagSeconds",
)  # fmt: skip


class NamespaceQuery(msgspec.Struct):
    """The namespace of a stream; required if its name is ambiguous."""

    namespace: str | None = None


class StreamsQuery(PageQuery):
    """Filters on the streams."""

    namespace: str | None = None


class RecordsQuery(OffsetQuery):
    """A page of a stream's records."""

    namespace: str | None = None


class KeysQuery(RecordsQuery):
    """Filters on the keys of a stream's groups."""

    search: str | None = None


async def stream_of(broker: Broker, call: Call) -> Stream:
    """Return the stream named by a call."""
    return await find_stream(broker, call, call.path["stream"], call.query.namespace)


def _age(now: datetime, since: datetime | None) -> float:
    return round(max(0.0, (now - since).total_seconds()), 3) if since is not None else 0.0


def _rates_of(rates: dict[str, Any] | None) -> dict[str, Any]:
    """Rates over the last minute, as shown by the API; zero if none were measured."""
    found = rates or {}
    return {
        "arrivingPerSecond": found.get("arriving", 0.0),
        "processedPerSecond": found.get("processed", 0.0),
        "sealedPerSecond": found.get("sealed", 0.0),
        "latePerSecond": found.get("late", 0.0),
        "backpressure": found.get("backpressure", 0.0),
    }


def progress_of(state: dict[str, Any], rates: dict[str, Any] | None) -> dict[str, Any]:
    """The progress and counts of a stream, as shown by the API."""
    mark = state["watermark_us"]
    return {
        "watermark": None if mark is None else shown_time(mark),
        "lagSeconds": _age(state["now"], state["unread_since"]),
        "openWindows": state["open_windows"],
        "records": state["records"],
        "sealedWindows": state["windows"],
        "late": state["late"],
        "dropped": state["dropped"],
        "dead": state["dead"],
        "updatedAt": iso(state["sealed_at"]),
        "rates": _rates_of(rates),
        "retention": {
            "needsSince": iso(state["needs_since"]),
            "heldSince": iso(state["held_since"]),
            "heldSeconds": _age(state["now"], state["held_since"]),
        },
    }


def _definition(stream: Stream, body: Body | None) -> dict[str, Any]:
    """The definition of a stream, as shown by the API; `body` is its newest version."""
    assert body is not None, "definitions are never removed"
    queues = [source.queue for source in body.sources]
    return {**shown(spec_of(body), body, stream), "sourceQueues": queues}


async def _described(broker: Broker, chosen: list[Stream]) -> list[dict[str, Any]]:
    streams = broker.store.streams
    queue_ids = [stream.queue_id for stream in chosen]
    rows, _ = await broker.store.groups.page(Page(_MOST_GROUPS), queue_ids=queue_ids)
    groups: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["queue_id"], []).append(row)
    ids = [stream.id for stream in chosen]
    rates = {row["id"]: row for row in await streams.rates(ids)}
    states = {row["id"]: progress_of(row, rates.get(row["id"])) for row in await streams.state(ids)}
    described = []
    for stream in chosen:
        own = groups.get(stream.queue_id, [])
        described.append({
            "id": str(stream.id),
            "name": stream.name,
            "namespace": stream.namespace,
            "version": stream.version,
            "windowQueue": stream.queue,
            **_definition(stream, await streams.body(stream.id, stream.version)),
            "createdAt": iso(stream.created_at),
            "updatedAt": iso(stream.updated_at),
            "activeLeases": sum(row["leases"] for row in own),
            "consumerGroups": [row["name"] for row in own],
            **({"progress": states[stream.id]} if stream.id in states else {}),
        })  # fmt: skip
    return described


async def list_streams(broker: Broker, call: Call) -> Response:
    """List the streams, optionally of one namespace."""
    query: StreamsQuery = call.query
    counted_at = await broker.counted_at()
    wanted = page_of(query, *_SORTS, visible=call.visible())
    found, total = await broker.store.streams.page(wanted, query.namespace)
    page = paged("streams", await _described(broker, found), total, query)
    return json({**page, "countedAt": counted_at})


async def get_stream(broker: Broker, call: Call) -> Response:
    """Return one stream, with the lag of its groups."""
    stream = await stream_of(broker, call)
    (described,) = await _described(broker, [stream])
    groups, _ = await broker.store.groups.page(Page(), queue_ids=[stream.queue_id])
    rates = await broker.store.rates.of_groups(groups)
    described["groups"] = [
        {
            "name": row["name"],
            "lag": row["lag"],
            "processing": row["processing"],
            "oldestUnackedAt": iso(row["oldest"]) if row["lag"] else None,
            "lastAckedAt": iso(row["acked_at"]),
            "rates": shown_rates(rates[row["id"]]),
        }
        for row in groups
    ]
    described["lastError"] = await broker.store.streams.last_error(stream)
    return json(described)


def _bucket(row: dict[str, Any]) -> dict[str, Any]:
    """A bucket of keys, as shown by the API; `watermark` is that of the most delayed stream."""
    mark = row["watermark_us"]
    return {
        "bucket": row["bucket"],
        "batchRecords": row["batch_records"],
        "batchSeconds": row["batch_seconds"],
        "watermark": None if mark is None else shown_time(mark),
        "openWindows": row["open_windows"],
        "records": row["records"],
        "sealedWindows": row["windows"],
        "late": row["late"],
        "dropped": row["dropped"],
        "dead": row["dead"],
        "updatedAt": iso(row["updated_at"]),
    }


async def _stats(broker: Broker) -> dict[str, Any]:
    found, total = await broker.store.streams.page(Page())
    rates = {row["id"]: row for row in await broker.store.streams.rates()}
    states = {row["id"]: progress_of(row, rates.get(row["id"])) for row in await broker.store.streams.state()}
    totals = await broker.store.streams.totals()
    pipeline = await broker.store.streams.pipeline()
    buckets = await broker.store.streams.buckets()
    progress = list(states.values())
    return {
        "streams": total,
        "consumerGroups": totals["groups"],
        "activeLeases": totals["leases"],
        **{
            name: sum(row[name] for row in progress)
            for name in ("openWindows", "records", "sealedWindows", "late", "dropped", "dead")
        },
        "lagSeconds": max((row["lagSeconds"] for row in progress), default=0.0),
        "pipeline": {
            "active": pipeline["active"],
            "holder": pipeline["holder"] if pipeline["active"] else None,
            "epoch": pipeline["epoch"],
            "query": pipeline["queries"].get(STREAMS_QUERY, {}),
            "queries": pipeline["queries"],
            "buckets": [_bucket(row) for row in buckets],
        },
        "byStream": [
            {"id": str(stream.id), "name": stream.name, "namespace": stream.namespace, **states[stream.id]}
            for stream in found
            if stream.id in states
        ],
    }


async def stream_stats(broker: Broker) -> dict[str, Any]:
    """Counts over all streams, and the reports of the pipeline, at most a second old."""
    found: dict[str, Any] = await broker.cache.get("streams", lambda: _stats(broker))
    return found


async def stats(broker: Broker, call: Call) -> Response:
    """Return counts over all streams, and the pipeline's reports."""
    found = await stream_stats(broker)
    visible = [
        row
        for row in found["byStream"]
        if call.may(stream_name(row["namespace"], row["name"]), Right.STREAM_READ)
    ]
    return json({**found, "byStream": visible})


async def consumers(broker: Broker, call: Call) -> Response:
    """List the keys of each group, with the last acked window."""
    stream = await stream_of(broker, call)
    query: KeysQuery = call.query
    rows = await broker.store.streams.consumers(stream, Page(query.limit, query.offset, search=query.search))
    return json({
        "consumers": [
            {
                "consumerGroup": row["group"],
                "streamKey": row["key"],
                "lastAckedWindowEnd": iso(row["window_end"]),
                "totalWindowsConsumed": row["total"],
                "lastConsumedAt": iso(row["acked_at"]),
            }
            for row in rows
        ]
    })  # fmt: skip


def shown_record(row: dict[str, Any]) -> dict[str, Any]:
    """A late or dead record, as shown by the API."""
    return {
        "key": row["key"],
        "version": row["version"],
        "messageId": str(row["id"]),
        "queue": row["queue"],
        "partition": row["partition"],
        "transactionId": row["transaction_id"],
        "createdAt": iso(row["created_at"]),
        "seenAt": iso(row["at"]),
    }


def shown_dead(row: dict[str, Any]) -> dict[str, Any]:
    """A dead record, or a window that could not be computed, as shown by the API."""
    return {
        **shown_record(row),
        "reason": row["reason"],
        "windowStart": None if row["start_us"] is None else shown_time(row["start_us"]),
        "windowEnd": None if row["end_us"] is None else shown_time(row["end_us"]),
    }


def shown_late(row: dict[str, Any]) -> dict[str, Any]:
    """A late record, as shown by the API."""
    return {
        **shown_record(row),
        "time": shown_time(row["time_us"]),
        "closedUpTo": shown_time(row["closed_us"]),
        "dropped": row["dropped"],
    }


async def late(broker: Broker, call: Call) -> Response:
    """List records that arrived after their window was sealed, newest first."""
    rows = await broker.store.streams.late(await stream_of(broker, call), call.query.limit, call.query.offset)
    return json({"late": [shown_late(row) for row in rows]})


async def dead(broker: Broker, call: Call) -> Response:
    """List unreadable records and windows that could not be computed, newest first."""
    rows = await broker.store.streams.dead(await stream_of(broker, call), call.query.limit, call.query.offset)
    return json({"dead": [shown_dead(row) for row in rows]})


async def delete(broker: Broker, call: Call) -> Response:
    """Delete a stream with its windows and groups; its source queues remain."""
    stream = await stream_of(broker, call)
    existed = await broker.store.streams.delete(stream)
    broker.bus.forget(stream.queue)
    return json({"deleted": True, "name": stream.name, "namespace": stream.namespace, "existed": existed})


STREAMS = "/api/v1/resources/streams"

ROUTES = [
    Route(
        "GET",
        STREAMS,
        list_streams,
        "List streams",
        Right.STREAM_READ,
        {200: StreamList},
        query=StreamsQuery,
    ),
    Route(
        "GET",
        f"{STREAMS}/stats",
        stats,
        "Counts over all streams, and the pipeline",
        Right.SYSTEM_READ,
        {200: StreamStats},
    ),
    Route(
        "GET",
        f"{STREAMS}/:stream",
        get_stream,
        "Get a stream",
        Right.STREAM_READ,
        {200: StreamDetail},
        query=NamespaceQuery,
    ),
    Route(
        "GET",
        f"{STREAMS}/:stream/consumers",
        consumers,
        "Show the progress of each group per key",
        Right.STREAM_READ,
        {200: StreamConsumers},
        query=KeysQuery,
    ),
    Route(
        "GET",
        f"{STREAMS}/:stream/late",
        late,
        "List late records",
        Right.STREAM_READ,
        {200: LateRecords},
        query=RecordsQuery,
    ),
    Route(
        "GET",
        f"{STREAMS}/:stream/dead",
        dead,
        "List unreadable records, and windows that could not be computed",
        Right.STREAM_READ,
        {200: DeadRecords},
        query=RecordsQuery,
    ),
    Route(
        "DELETE",
        f"{STREAMS}/:stream",
        delete,
        "Delete a stream",
        Right.STREAM_ADMIN,
        {200: StreamDeleted},
        query=NamespaceQuery,
    ),
]
