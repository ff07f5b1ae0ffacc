"""POST /api/v1/stream/…: poll windows, ack them, seek.

Thin adapters over the queue's own groups, leases, retries and dead letters: a poll is a pop of one message of
the stream's window queue.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import Meta

from ..formats.definition import LeaseMs
from ..formats.window_message import WindowMessage, decode
from ..store.delivery import Ack, Batch, WindowPop
from ..store.errors import StoreError
from ..store.hydration import Leased
from ..store.streams import Stream
from .ack import settle
from .broker import Broker
from .errors import ApiError, bad_request, not_found
from .http import NOTHING, Call, Response, Right, Route, json
from .leases import Lease
from .limits import check_lease, check_name
from .parking import Lot
from .reach import may_touch_lease, stream_name
from .responses.streams import LeaseRenewed, Polled, StreamMoved, WindowAcked, WindowPage
from .times import iso, parse_time
from .window import page_of, parse_cursor, shown_window

_MARGIN_SECONDS = 1.0  # a poll ends this long before the client's own timeout
_MOST_WINDOWS = 1000
_PAGE = 1000
_SEES_ROWS = (Right.QUEUE_CONSUME, Right.QUEUE_READ, Right.JOB_READ)


async def find_stream(broker: Broker, call: Call, name: str, namespace: str | None) -> Stream:
    """Resolve the stream of a request: 404 if there is none, 400 if the name is ambiguous."""
    found = await broker.store.streams.named(name)
    found = [stream for stream in found if call.may(stream_name(stream.namespace, stream.name))]
    if namespace is not None:
        found = [stream for stream in found if stream.namespace == namespace]
    if not found:
        raise await _no_windows(broker, call, name, namespace)
    if len(found) > 1:
        names = ", ".join(stream.namespace for stream in found)
        raise bad_request(f"namespace is required: the stream {name} exists in {names}")
    return found[0]


async def _no_windows(broker: Broker, call: Call, name: str, namespace: str | None) -> ApiError:
    """The error for a name that no stream of windows has. The rows of a job are messages of a queue."""
    for job in await broker.store.jobs.named(name, namespace):
        if job.definition.writes is None and any(call.may(job.full_name, right) for right in _SEES_ROWS):
            return not_found(
                f"the stream {name} emits rows, not windows: pop them from the queue {job.queue};"
                f" /api/v1/jobs/{job.full_name} shows and deletes the stream"
            )
    return not_found("Stream not found")


class PollRequest(msgspec.Struct, rename="camel"):
    """Which windows to poll, and how long to wait."""

    stream_name: str
    consumer_group: str
    timeout: Annotated[float, Meta(ge=0)] = 30_000
    namespace: str | None = None
    max_windows: Annotated[int, Meta(ge=1, le=_MOST_WINDOWS)] | None = None
    max_messages: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    consumer_id: str | None = None
    messages: bool = True


async def poll(broker: Broker, call: Call) -> Response:
    """Lease the next window, or several of different keys, with or without their messages."""
    request: PollRequest = call.body
    call.check_limit()
    if not request.messages and request.max_messages is not None:
        raise bad_request(
            f"maxMessages is {request.max_messages} and messages is false: remove maxMessages, and page"
            " with /api/v1/stream/window/:leaseId/messages"
        )
    stream = await find_stream(broker, call, request.stream_name, request.namespace)
    group = check_name("consumerGroup", request.consumer_group)
    holder = check_name("consumerId", request.consumer_id) if request.consumer_id else None
    broker.metrics.pop_requests.inc()
    gone = call.watch()

    async def take(most: int) -> list[Batch]:
        call.check_known()
        if not most or broker.modes.pop or gone.done():
            return []
        wish = WindowPop(stream.queue, group, stream.lease_timeout_ms, call.is_waiting, holder)
        return [batch for batch in await broker.window_pops.run([wish] * most) if batch is not None]

    async def once() -> Batch | None:
        return next(iter(await take(1)), None)

    async def next_check() -> tuple[bool, float | None]:
        return await broker.store.deliverer.next_check(stream.queue, group)

    lot = Lot(stream.queue, (None, None), group, None)
    version = broker.parking.version(lot)
    most = request.max_windows or 1
    batches = await take(most)
    if not batches and request.timeout:
        seconds = patience(request.timeout, broker.settings.max_wait_seconds)
        first = await broker.parking.wait(lot, version, once, next_check, seconds, gone)
        if first is not None:
            batches = [first]
            with suppress(StoreError):  # deliver the windows found so far
                batches += await take(most - 1)
    if not batches:
        return NOTHING._replace(headers=broker.pipeline_header())
    return await _delivered(broker, call, stream, group, batches)


def patience(timeout_ms: float, most_seconds: float) -> float:
    """How long a poll waits, in seconds: it ends before the client's own timeout."""
    seconds = timeout_ms / 1000
    return min(seconds - min(_MARGIN_SECONDS, seconds / 10), most_seconds)


async def _delivered(
    broker: Broker, call: Call, stream: Stream, group: str, batches: list[Batch]
) -> Response:
    """Load the messages of windows; release the leases if that fails or the client disconnects."""
    request: PollRequest = call.body
    unwanted = True
    reads = [asyncio.ensure_future(_window(broker, request, stream, group, batch)) for batch in batches]
    try:
        windows = await asyncio.gather(*reads)
        unwanted = await call.has_left()
    finally:
        if unwanted:
            for read in reads:
                read.cancel()
            broker.background(broker.give_back(*batches))
    if unwanted:
        return NOTHING
    call.count_delivered(sum(max(1, len(window.get("messages", ()))) for window in windows))
    broker.metrics.pops.inc(len(windows))
    broker.metrics.windows_delivered.inc(len(windows))
    broker.activity.popped(stream.queue, group, len(windows))
    broker.metrics.lease_expiries.inc(sum(batch.messages[0].lease_expired for batch in batches))
    _note_delays(broker, stream, batches)
    return json({"windows": windows} if request.max_windows is not None else {"window": windows[0]})


def _note_delays(broker: Broker, stream: Stream, batches: list[Batch]) -> None:
    """Observe the delay between sealing and first delivery."""
    now_us = time.time_ns() // 1000
    delays = broker.metrics.delivery_delay.labels(stream.namespace, stream.name)
    for batch in batches:
        message = batch.messages[0]
        if not message.retries and not message.lease_expired:
            delays.observe(max(0, now_us - message.created_us) / 1e6)


async def _window(
    broker: Broker, request: PollRequest, stream: Stream, group: str, batch: Batch
) -> dict[str, Any]:
    message = batch.messages[0]
    window = decode(message.payload)
    lease = Lease(message.partition_id, message.transaction_id, group, window.id)
    broker.leases.remember(str(batch.lease_id), lease)
    shown: dict[str, Any] = {}
    if request.messages:
        page = await page_of(broker, window, request.max_messages, None)
        shown["messages"] = page.messages
        if page.next_cursor is not None:
            shown["nextCursor"] = page.next_cursor
    return shown_window(
        window,
        stream=stream.name,
        namespace=stream.namespace,
        leaseId=str(batch.lease_id),
        leaseTimeoutMs=stream.lease_timeout_ms,
        consumerGroup=group,
        partitionId=str(message.partition_id),
        transactionId=message.transaction_id,
        retryCount=message.retries,
        **shown,
    )


class WindowPageQuery(msgspec.Struct, rename="camel"):
    """Start and size of a page of messages."""

    cursor: str | None = None
    max_messages: Annotated[int, Meta(ge=1, le=100_000)] = _PAGE


async def window_messages(broker: Broker, call: Call) -> Response:
    """Return more messages of a leased window."""
    call.check_limit()
    cursor = parse_cursor(call.query.cursor)
    _, window = await _leased_window(broker, call, call.path["leaseId"])
    if window is None:
        raise not_found("Lease not found or expired")
    page = await page_of(broker, window, call.query.max_messages, cursor)
    call.count_delivered(len(page.messages))
    return json({"windowId": window.id, "messages": page.messages, "nextCursor": page.next_cursor})


async def _leased_window(broker: Broker, call: Call, text: str) -> tuple[Leased | None, WindowMessage | None]:
    try:
        lease_id = UUID(text)
    except ValueError:
        return None, None
    if not await may_touch_lease(broker, call, lease_id):
        return None, None
    leased = await broker.store.hydration.leased(lease_id)
    return leased, decode(leased.payload) if leased is not None and leased.payload is not None else None


class WindowAckRequest(msgspec.Struct, rename="camel"):
    """An ack or nack of a window."""

    lease_id: str
    window_id: str | None = None
    success: bool = True
    error: str | None = None


async def ack(broker: Broker, call: Call) -> Response:
    """Ack or nack a window: done, or redelivered after a delay and finally dead-lettered."""
    request: WindowAckRequest = call.body
    if not request.lease_id:
        raise bad_request("Missing leaseId")
    lease = broker.leases.take(request.lease_id) if call.caller.scopes is None else None
    if lease is None:
        leased, window = await _leased_window(broker, call, request.lease_id)
        if leased is None:
            raise bad_request("Invalid or expired lease")
        if window is None or leased.transaction_id is None:
            # Already acked under this lease: harmless.
            return json({"success": True, "acked": request.success})
        lease = Lease(leased.partition_id, leased.transaction_id, leased.group, window.id)
    if request.window_id is not None and request.window_id != lease.window_id:
        raise bad_request(f"windowId is {request.window_id}; the lease is on {lease.window_id}")
    wanted = Ack(
        lease.partition_id,
        lease.transaction_id,
        lease.group,
        UUID(request.lease_id),
        "completed" if request.success else "failed",
        request.error.replace("\x00", "") if request.error is not None else None,
    )
    results = await broker.acks.run([wanted])
    await settle(broker, [wanted], results)
    if not results[0].accepted:
        raise bad_request("Invalid or expired lease")
    return json({"success": True, "acked": request.success, "dlq": results[0].outcome == "dead"})


class RenewRequest(msgspec.Struct):
    """The new lease time from now."""

    leaseId: str  # noqa: N815 - the wire has both spellings
    extend_ms: LeaseMs = 30_000


async def renew(broker: Broker, call: Call) -> Response:
    """Extend a lease; never shortens it."""
    request: RenewRequest = call.body
    try:
        lease_id = UUID(request.leaseId)
    except ValueError:
        lease_id = None
    found = None
    check_lease("extend_ms", request.extend_ms, "milliseconds")
    if lease_id is not None and await may_touch_lease(broker, call, lease_id):
        found = await broker.store.deliverer.extend(lease_id, request.extend_ms / 1000)
    if found is None:
        raise not_found("Lease not found or expired")
    return json({"success": True, "lease_expires_at": iso(found[1])})


class StreamSeekRequest(msgspec.Struct, rename="camel"):
    """The target: windows that end after a time."""

    stream_name: str
    consumer_group: str
    timestamp: str
    namespace: str | None = None


async def seek(broker: Broker, call: Call) -> Response:
    """Seek a group in a stream; leases are revoked, older acks rejected."""
    request: StreamSeekRequest = call.body
    time = parse_time("timestamp", request.timestamp)
    if time is None or not request.stream_name or not request.consumer_group:
        raise bad_request(_SEEK)
    group = check_name("consumerGroup", request.consumer_group)
    stream = await find_stream(broker, call, request.stream_name, request.namespace)
    call.acted_on = stream_name(stream.namespace, stream.name)
    await broker.store.streams.seek(stream, group, max(time, datetime(1, 1, 2, tzinfo=UTC)))
    broker.bus.wake(stream.queue)
    return json({"success": True, "consumerGroup": group, "timestamp": iso(time)})


_SEEK = "Missing required parameters"
_STREAM = "/api/v1/stream"

ROUTES = [
    Route(
        "POST",
        f"{_STREAM}/poll",
        poll,
        "Lease the next window of a stream",
        Right.STREAM_CONSUME,
        {200: Polled, 204: None},
        body=PollRequest,
    ),
    Route(
        "GET",
        f"{_STREAM}/window/:leaseId/messages",
        window_messages,
        "More messages of a window",
        Right.STREAM_CONSUME,
        {200: WindowPage},
        query=WindowPageQuery,
    ),
    Route(
        "POST",
        f"{_STREAM}/ack",
        ack,
        "Ack a window",
        Right.STREAM_CONSUME,
        {200: WindowAcked},
        body=WindowAckRequest,
        messages={"leaseId": "Missing leaseId", "": "Missing leaseId"},
    ),
    Route(
        "POST",
        f"{_STREAM}/renew-lease",
        renew,
        "Renew the lease of a window",
        Right.STREAM_CONSUME,
        {200: LeaseRenewed},
        body=RenewRequest,
    ),
    Route(
        "POST",
        f"{_STREAM}/seek",
        seek,
        "Seek a group of a stream",
        Right.STREAM_ADMIN,
        {200: StreamMoved},
        body=StreamSeekRequest,
        messages=dict.fromkeys(("", "streamName", "consumerGroup", "timestamp"), _SEEK),
    ),
]
