"""Messages, dead letters and traces over HTTP."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import asdict

from ..store.dead_letters import Filter
from ..store.headers import shown
from ..store.page import Page
from .broker import Broker
from .errors import bad_request, not_found
from .http import Call, Response, Right, Route, json
from .limits import check_ids, check_name
from .paging import OffsetQuery
from .reach import check_partition
from .responses.messages import (
    Counted,
    DeadLetter,
    DeadLetterList,
    Message,
    MessageDeleted,
    MessageDetail,
    MessageList,
    MessageRetried,
    Trace,
    TraceAdded,
    TraceList,
    TraceName,
    TraceNames,
    TracePage,
)
from .times import iso_time, parse_time


class BrowseQuery(OffsetQuery):
    """Filters on the messages."""

    queue: str | None = None
    partition: str | None = None
    ns: str | None = None
    namespace: str | None = None
    task: str | None = None
    status: Literal["pending", "processing", "completed", "dead_letter"] | None = None
    since: str | None = msgspec.field(default=None, name="from")
    until: str | None = msgspec.field(default=None, name="to")


def partition_number(text: str) -> int:
    """Parse a partition id from a path, or raise 404."""
    if len(text) < 20 and text.isascii() and text.isdigit() and int(text) < 2**63:
        return int(text)
    raise not_found(f"partition {text} does not exist")


def _message(row: dict[str, Any]) -> Message:
    headers, producer = shown(row["headers"])
    return Message(
        id=str(row["id"]),
        transaction_id=row["transaction_id"],
        trace_id=row["trace_id"],
        queue=row["queue"],
        partition=row["partition"],
        partition_id=str(row["partition_id"]),
        namespace=row["namespace"],
        task=row["task"],
        status=row["status"],
        data=Raw(row["payload"].encode()),
        created_at=iso_time(row["created_at"]),
        headers=headers or UNSET,
        producer_sub=producer,
    )


async def browse(broker: Broker, call: Call) -> Response:
    """List messages of the log, newest first."""
    query: BrowseQuery = call.query
    queue = await broker.store.catalog.queue(query.queue) if query.queue else None
    if query.queue and (queue is None or not call.may(query.queue)):
        return json(MessageList([], query.limit, query.offset, True))
    rows, is_complete = await broker.store.messages.browse(
        query.limit, query.offset, queue_id=queue.id if queue else None, partition=query.partition,
        namespace=query.ns or query.namespace, task=query.task, status=query.status,
        visible=call.visible(),
        **{"from": parse_time("from", query.since), "to": parse_time("to", query.until)},
    )  # fmt: skip
    return json(MessageList([_message(row) for row in rows], query.limit, query.offset, is_complete))


async def _path(broker: Broker, call: Call) -> tuple[int, str]:
    """The partition and message in the path, checked against the caller's scopes."""
    partition_id = partition_number(call.path["partitionId"])
    await check_partition(broker, call, partition_id)
    return partition_id, call.path["transactionId"].replace("\x00", "")


async def get_message(broker: Broker, call: Call) -> Response:
    """Return one message, or its remaining dead letter."""
    partition_id, transaction_id = await _path(broker, call)
    row = await broker.store.messages.get(partition_id, transaction_id)
    dead, _ = await broker.store.dead_letters.find(
        Filter(partition_id=partition_id, transaction_id=transaction_id)
    )
    if row is None and not dead:
        raise not_found(f"message {transaction_id} does not exist in partition {partition_id}")
    shown = _message(row) if row is not None else _dead_letter(dead[0])
    return json(MessageDetail(**asdict(shown), dead_letters=[_dead_letter(entry) for entry in dead]))


async def delete_message(broker: Broker, call: Call) -> Response:
    """Delete a message and its dead letters."""
    partition_id, transaction_id = await _path(broker, call)
    chosen = Filter(partition_id=partition_id, transaction_id=transaction_id)
    dead = await broker.store.dead_letters.delete(chosen)
    if not await broker.store.messages.delete(partition_id, transaction_id) and not dead:
        raise not_found(f"message {transaction_id} does not exist in partition {partition_id}")
    return json(MessageDeleted(True, True, transaction_id, str(partition_id)))


async def retry_message(broker: Broker, call: Call) -> Response:
    """Return a dead letter to its group for redelivery."""
    partition_id, transaction_id = await _path(broker, call)
    count = await _put_back(broker, Filter(partition_id=partition_id, transaction_id=transaction_id))
    if not count:
        raise not_found(f"message {transaction_id} in partition {partition_id} is not a dead letter")
    return json(MessageRetried(True, transaction_id, str(partition_id), count))


class DeadLetterQuery(OffsetQuery, rename="camel"):
    """Filters on the dead letters."""

    queue: str | None = None
    consumer_group: str | None = None
    partition: str | None = None
    partition_id: str | None = None
    transaction_id: str | None = None
    since: str | None = msgspec.field(default=None, name="from")
    until: str | None = msgspec.field(default=None, name="to")


def _filter(call: Call) -> Filter:
    query: DeadLetterQuery = call.query
    return Filter(
        queue=query.queue,
        group=query.consumer_group,
        partition=query.partition,
        partition_id=partition_number(query.partition_id) if query.partition_id else None,
        transaction_id=query.transaction_id,
        since=parse_time("from", query.since),
        until=parse_time("to", query.until),
        visible=call.visible(),
    )


def _dead_letter(row: dict[str, Any]) -> DeadLetter:
    headers, producer = shown(row["headers"])
    return DeadLetter(
        id=str(row["id"]),
        message_id=str(row["id"]),
        transaction_id=row["transaction_id"],
        trace_id=row["trace_id"],
        partition_id=str(row["partition_id"]),
        queue=row["queue"],
        queue_name=row["queue"],
        partition=row["partition"],
        partition_name=row["partition"],
        consumer_group=row["group"],
        error_message=row["error"],
        retry_count=row["attempts"],
        data=Raw(row["payload"].encode()),
        created_at=iso_time(row["created_at"]),
        failed_at=iso_time(row["failed_at"]),
        headers=headers or UNSET,
        producer_sub=producer,
    )


async def list_dead_letters(broker: Broker, call: Call) -> Response:
    """List dead letters, newest first."""
    query: DeadLetterQuery = call.query
    rows, total = await broker.store.dead_letters.find(_filter(call), query.limit, query.offset)
    return json(DeadLetterList([_dead_letter(row) for row in rows], total, query.limit, query.offset))


def _need_filter(call: Call) -> Filter:
    query: DeadLetterQuery = call.query
    if not (query.queue or query.consumer_group or query.partition_id):
        raise bad_request(
            "refusing to act on all dead letters: pass at least one of queue, consumerGroup and partitionId"
        )
    call.acted_on = query.queue or query.consumer_group or query.partition_id
    return _filter(call)


async def _put_back(broker: Broker, chosen: Filter) -> int:
    """Return dead letters to their groups, and wake waiting polls."""
    partitions: list[int] = []
    for each in await _of_one_queue(broker, chosen):
        partitions += await broker.store.dead_letters.put_back(each)
    for _, queue in (await broker.store.catalog.names_of(partitions)).values():
        broker.bus.wake(queue)
    return len(partitions)


async def _of_one_queue(broker: Broker, chosen: Filter) -> list[Filter]:
    """Split a filter into one per visible queue, unless all are visible."""
    if chosen.visible is None:
        return [chosen]
    rows, _ = await broker.store.groups.page(
        Page(visible=chosen.visible), name=chosen.group, queue=chosen.queue
    )
    return [msgspec.structs.replace(chosen, queue=name) for name in {row["queue"] for row in rows}]


async def retry_dead_letters(broker: Broker, call: Call) -> Response:
    """Return all dead letters of a filter to their groups."""
    return json(Counted(True, await _put_back(broker, _need_filter(call))))


async def delete_dead_letters(broker: Broker, call: Call) -> Response:
    """Delete all dead letters of a filter."""
    return json(Counted(True, await broker.store.dead_letters.delete(_need_filter(call))))


class TraceRequest(msgspec.Struct, rename="camel"):
    """A note on a message."""

    transaction_id: str
    partition_id: str | int
    data: Raw
    consumer_group: str | None = None
    trace_names: list[str] | str | None = None
    event_type: str | None = None


async def add_trace(broker: Broker, call: Call) -> Response:
    """Add a trace to a message."""
    request: TraceRequest = call.body
    names = [request.trace_names] if isinstance(request.trace_names, str) else request.trace_names or []
    check_ids("transactionId", [request.transaction_id])
    for name in names:
        check_name("traceNames", name)
    for what, text in (("eventType", request.event_type), ("consumerGroup", request.consumer_group)):
        if text:
            check_name(what, text)
    partition_id = partition_number(str(request.partition_id))
    await check_partition(broker, call, partition_id)
    number = await broker.store.traces.add(
        partition_id, request.transaction_id, request.consumer_group,
        request.event_type or "info", names, bytes(request.data).decode(),
    )  # fmt: skip
    if number is None:
        raise not_found(f"partition {request.partition_id} does not exist")
    return json(TraceAdded(True, str(number)), 201)


def _trace(row: dict[str, Any]) -> Trace:
    return Trace(
        id=str(row["id"]),
        transaction_id=row["transaction_id"],
        partition_id=str(row["partition_id"]),
        queue=row["queue"],
        partition=row["partition"],
        consumer_group=row["group_name"],
        event_type=row["event_type"],
        trace_names=row["names"],
        data=row["data"],
        created_at=iso_time(row["created_at"]),
    )


async def message_traces(broker: Broker, call: Call) -> Response:
    """List the traces of one message."""
    return json(
        TraceList([_trace(row) for row in await broker.store.traces.of_message(*await _path(broker, call))])
    )


async def named_traces(broker: Broker, call: Call) -> Response:
    """List the traces of one name."""
    query: OffsetQuery = call.query
    rows = await broker.store.traces.of_name(
        call.path["name"].replace("\x00", ""), query.limit, query.offset, call.visible()
    )
    total = rows[0]["total"] if rows else 0
    return json(TracePage([_trace(row) for row in rows], total, query.limit, query.offset))


async def trace_names(broker: Broker, call: Call) -> Response:
    """List all trace names."""
    query: OffsetQuery = call.query
    rows = await broker.store.traces.names(query.limit, query.offset, call.visible())
    return json(TraceNames([TraceName(row["name"], row["traces"], iso_time(row["last_at"])) for row in rows]))


_MESSAGE = "/api/v1/messages/:partitionId/:transactionId"

ROUTES = [
    Route(
        "GET",
        "/api/v1/messages",
        browse,
        "Browse messages",
        Right.QUEUE_READ,
        {200: MessageList},
        query=BrowseQuery,
    ),
    Route("GET", _MESSAGE, get_message, "Get a message", Right.QUEUE_READ, {200: MessageDetail}),
    Route("DELETE", _MESSAGE, delete_message, "Delete a message", Right.QUEUE_ADMIN, {200: MessageDeleted}),
    Route(
        "POST",
        f"{_MESSAGE}/retry",
        retry_message,
        "Retry a dead letter",
        Right.QUEUE_ADMIN,
        {200: MessageRetried},
    ),
    Route(
        "GET",
        "/api/v1/dlq",
        list_dead_letters,
        "List dead letters",
        Right.QUEUE_READ,
        {200: DeadLetterList},
        query=DeadLetterQuery,
    ),
    Route(
        "POST",
        "/api/v1/dlq/retry",
        retry_dead_letters,
        "Retry all dead letters that match",
        Right.QUEUE_ADMIN,
        {200: Counted},
        query=DeadLetterQuery,
    ),
    Route(
        "DELETE",
        "/api/v1/dlq",
        delete_dead_letters,
        "Delete dead letters",
        Right.QUEUE_ADMIN,
        {200: Counted},
        query=DeadLetterQuery,
    ),
    Route(
        "POST",
        "/api/v1/traces",
        add_trace,
        "Record a trace for a message",
        Right.QUEUE_CONSUME,
        {201: TraceAdded},
        body=TraceRequest,
        messages={"transactionId": "transactionId is required", "partitionId": "partitionId is required"},
    ),
    Route(
        "GET",
        "/api/v1/traces/names",
        trace_names,
        "List trace names",
        Right.QUEUE_READ,
        {200: TraceNames},
        query=OffsetQuery,
    ),
    Route(
        "GET",
        "/api/v1/traces/by-name/:name",
        named_traces,
        "List traces by name",
        Right.QUEUE_READ,
        {200: TracePage},
        query=OffsetQuery,
    ),
    Route(
        "GET",
        "/api/v1/traces/:partitionId/:transactionId",
        message_traces,
        "List traces of a message",
        Right.QUEUE_READ,
        {200: TraceList},
    ),
]
