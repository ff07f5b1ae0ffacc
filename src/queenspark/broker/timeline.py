"""GET /api/v1/resources/streams/:stream/timeline: windows by key and time, with their state in each group."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import polars as pl
from msgspec import Meta

from ..formats.definition import shown
from ..formats.window_message import decode
from ..sql import SqlError
from ..store.definitions import Body, spec_of
from ..store.errors import Refused
from ..store.page import Page
from ..store.streams import Stream
from ..store.timeline import GroupState, SealedWindow
from ..windows import WindowSpec
from .broker import Broker
from .errors import bad_request, not_found
from .explanation.explain import sealing
from .explanation.next_window import NextWindow, open_windows
from .explanation.records import open_records
from .http import Call, Response, Right, Route, json
from .paging import paged
from .responses.streams import StreamKeys, StreamVersions, Timeline, WindowDetail
from .stream_resources import STREAMS, KeysQuery, NamespaceQuery, stream_of
from .times import iso, iso_time, parse_time
from .window import page_of, parse_cursor, shown_time, shown_window

log = logging.getLogger("queenspark.broker")

_SPAN = timedelta(minutes=15)
_AHEAD = timedelta(days=1)  # windows further in the future are rarely wanted; `to` overrides this
_MOST_READ = 4000  # records of open windows


class TimelineQuery(NamespaceQuery, rename="camel"):
    """Filters on windows and keys."""

    from_: str | None = msgspec.field(name="from", default=None)
    to: str | None = None
    key: str | None = None
    search: str | None = None
    consumer_group: str | None = None
    state: Literal["open", "waiting", "leased", "acked", "retrying", "dead", "skipped", "late"] | None = None
    #: Number of keys, and of windows per key.
    limit: Annotated[int, Meta(ge=1, le=100)] = 30
    offset: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    windows: Annotated[int, Meta(ge=1, le=500)] = 200


class MessagesQuery(NamespaceQuery):
    """A page of a window's messages."""

    cursor: str | None = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = 20


async def timeline(broker: Broker, call: Call) -> Response:
    """Return windows of the busiest keys, or of matching ones; cached for a second."""
    stream = await stream_of(broker, call)
    query: TimelineQuery = call.query
    name = f"timeline {stream.id} {msgspec.json.encode(query).decode()}"
    return json(await broker.cache.get(name, lambda: _timeline(broker, stream, query)))


async def _timeline(broker: Broker, stream: Stream, query: TimelineQuery) -> dict[str, Any]:
    now = datetime.now(UTC)
    until = parse_time("to", query.to) or now + _AHEAD
    since = parse_time("from", query.from_) or min(now, until) - _SPAN
    if since >= until:
        raise bad_request(f"from ({query.from_}) must be before to ({query.to})")
    opened, standing_shown = await _open(broker, stream)
    with_open = [] if opened is None else [window.key for window in await opened.windows(most=1)]
    has_lanes = await broker.store.streams.has_lanes(stream)
    keys, total = await _keys(broker, stream, query, with_open, has_lanes)
    partitions = await broker.store.timeline.partitions(stream.queue_id, keys, has_lanes)
    sealed = await broker.store.timeline.windows(partitions, since, until, query.windows)
    states = await broker.store.timeline.states(stream.queue_id, sealed, query.consumer_group)
    windows = [_window(window, states[window.position]) for window in sealed]
    # The key of an ordered version may look like a lane.
    of_keys = set(keys)
    windows = [window for window in windows if window["key"] in of_keys]
    counted = Counter(window["key"] for window in windows)
    still_open: list[NextWindow] = []
    if opened is not None and query.state in (None, "open"):
        still_open = await opened.windows(most=query.windows + 1, keys=of_keys)
    drawn = list(_first(still_open, query.windows))
    standing_shown["openComplete"] &= len(drawn) == len(still_open)
    return {
        "now": iso_time(now),
        **standing_shown,
        "keys": keys,
        "totalKeys": max(total, len(keys)),
        "windows": [window for window in windows if _is_wanted(window, query.state)],
        "hasMore": [key for key, number in counted.items() if number >= query.windows],
        "open": [_open_window(window) for window in drawn],
    }


def _is_wanted(window: dict[str, Any], state: str | None) -> bool:
    if state is None:
        return True
    if state == "late":
        return bool(window["revision"] > 1)
    if state == "waiting" and not window["groups"]:
        return True
    return any(group["state"] == state for group in window["groups"])


async def _keys(
    broker: Broker, stream: Stream, query: TimelineQuery, with_open: list[str], has_lanes: bool
) -> tuple[list[str], int]:
    """The keys of a page, including those with only open windows, and the total."""
    if query.key is not None:
        return [query.key], 1
    page = Page(query.limit, query.offset, search=query.search)
    rows, total = await broker.store.timeline.keys(stream.queue_id, page, has_lanes)
    keys = dict.fromkeys(row["key"] for row in rows)
    search = (query.search or "").lower()
    for key in dict.fromkeys(with_open):
        if len(keys) >= query.limit or query.offset:
            break
        if search in key.lower():
            keys.setdefault(key)
    return list(keys), total


class _Opened(NamedTuple):
    """The records of open windows, and what determines their windows."""

    body: Body
    spec: WindowSpec
    records: pl.DataFrame
    tick: int

    async def windows(self, most: int, keys: Collection[str] | None = None) -> list[NextWindow]:
        """The open windows of each key (or of each of these) that end first, at most this many."""
        return await asyncio.to_thread(  # thousands of keys take a while
            open_windows, self.body, self.spec, self.records, self.tick, most=most, keys=keys
        )


def _first(windows: list[NextWindow], most: int) -> Iterator[NextWindow]:
    """At most this many windows of each key."""
    seen: Counter[str] = Counter()
    for window in windows:
        seen[window.key] += 1
        if seen[window.key] <= most:
            yield window


async def _open(broker: Broker, stream: Stream) -> tuple[_Opened | None, dict[str, Any]]:
    """The open windows according to the log, and the progress of the stream."""
    standing = await broker.store.standings.of(stream.id)
    if standing is None:
        raise not_found("Stream not found")
    body = standing.definition.body
    spec = sealing(body)
    found: _Opened | None = None
    is_complete = not standing.open_windows
    if spec is not None and standing.read_point is not None:
        try:
            records = await open_records(broker, standing, _MOST_READ)
            if records is not None:
                found = _Opened(body, spec, records.frame, standing.read_point[2])
                is_complete = records.is_complete and not records.is_first_gone
        except (Refused, SqlError) as error:  # no key, or an older version than the statement
            log.warning("cannot read the open windows of stream %d: %s", stream.id, error)
    mark = standing.watermark_us
    return found, {
        "safeTime": iso(standing.safe_time),
        "watermark": None if mark is None else shown_time(mark),
        "graceMs": 0 if spec is None else spec.grace_us // 1000,
        "openWindows": standing.open_windows,
        "openComplete": is_complete,
    }


def _open_window(window: NextWindow) -> dict[str, Any]:
    assert window.end_us is not None
    return {
        "key": window.key,
        "start": shown_time(window.start_us),
        "end": shown_time(window.end_us),
        "count": window.records,
        "sealedAtAbout": None if window.due_us is None else shown_time(window.due_us),
    }


def _window(window: SealedWindow, states: list[GroupState]) -> dict[str, Any]:
    return shown_window(
        decode(window.payload),
        partitionId=str(window.partition_id),
        transactionId=window.transaction_id,
        sealedAt=iso(window.sealed_at),
        groups=[_group(state) for state in states],
    )


def _group(state: GroupState) -> dict[str, Any]:
    return {
        "consumerGroup": state.group,
        "state": state.state,
        "attempts": state.attempts,
        "error": state.error,
        "leaseHolder": state.lease_holder,
        "leasedAt": iso(state.leased_at),
        "leaseExpiresAt": iso(state.lease_expires_at),
        "availableAt": iso(state.available_at),
        "failedAt": iso(state.failed_at),
    }


async def keys(broker: Broker, call: Call) -> Response:
    """List the keys of a stream by activity, or those that contain a text."""
    stream = await stream_of(broker, call)
    query: KeysQuery = call.query
    page = Page(query.limit, query.offset, search=query.search)
    has_lanes = await broker.store.streams.has_lanes(stream)
    rows, total = await broker.store.timeline.keys(stream.queue_id, page, has_lanes)
    return json(paged("keys", [{"key": row["key"], "windows": row["windows"]} for row in rows], total, query))


async def window(broker: Broker, call: Call) -> Response:
    """Return one sealed window with a page of its messages."""
    stream = await stream_of(broker, call)
    query: MessagesQuery = call.query
    partition_id = call.path["partitionId"]
    found = None
    if partition_id.isdigit() and len(partition_id) < 19:
        found = await broker.store.timeline.window(
            stream.queue_id, int(partition_id), call.path["transactionId"]
        )
    if found is None:
        raise not_found(f"stream {stream.name} has no window {call.path['transactionId']}")
    states = await broker.store.timeline.states(stream.queue_id, [found])
    page = await page_of(broker, decode(found.payload), query.limit, parse_cursor(query.cursor))
    shown_one = _window(found, states[found.position])
    return json({**shown_one, "messages": page.messages, "nextCursor": page.next_cursor})


async def versions(broker: Broker, call: Call) -> Response:
    """List the versions of a stream, newest first."""
    stream = await stream_of(broker, call)
    found = await broker.store.streams.versions(stream)
    return json({"versions": [_version(stream, *each) for each in found]})


def _version(stream: Stream, number: int, body: Body, created_at: datetime) -> dict[str, Any]:
    return {
        "version": number,
        **shown(spec_of(body), body, stream),
        "sourceQueues": [source.queue for source in body.sources],
        "createdAt": iso(created_at),
    }


ROUTES = [
    Route(
        "GET",
        f"{STREAMS}/:stream/timeline",
        timeline,
        "Windows by key and time, with their state in each group",
        Right.STREAM_READ,
        {200: Timeline},
        query=TimelineQuery,
        messages={
            "state": "state must be open, waiting, leased, acked, retrying, dead, skipped or late",
        },
    ),
    Route(
        "GET",
        f"{STREAMS}/:stream/keys",
        keys,
        "Keys of a stream, the busiest first",
        Right.STREAM_READ,
        {200: StreamKeys},
        query=KeysQuery,
    ),
    Route(
        "GET",
        f"{STREAMS}/:stream/versions",
        versions,
        "The versions of a stream",
        Right.STREAM_READ,
        {200: StreamVersions},
        query=NamespaceQuery,
    ),
    Route(
        "GET",
        f"{STREAMS}/:stream/windows/:partitionId/:transactionId",
        window,
        "A window with its messages",
        Right.STREAM_READ,
        {200: WindowDetail},
        query=MessagesQuery,
    ),
]
