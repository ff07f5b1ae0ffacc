"""GET /api/v1/resources/queues/:queue/log: the messages of a queue in order, for exports."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw

from ..settings import MIB
from ..store.headers import from_text
from ..store.position import BEGIN, LARGEST, Position
from .broker import Broker
from .errors import bad_request, not_found
from .http import Call, Response, Right, Route, json
from .paging import Limit
from .responses.messages import LoggedMessage, LogPage
from .times import iso_time, parse_time

_PAGE_BYTES = 8 * MIB
"""Payload bytes per page, exceeded by at most one message of up to `max_item_bytes`."""


class LogQuery(msgspec.Struct):
    """The position to continue from."""

    after: str | None = None
    since: str | None = msgspec.field(default=None, name="from")
    limit: Limit = 1000


async def read_log(broker: Broker, call: Call) -> Response:
    """Return the next messages after a position, without a group: no cursor moves."""
    query: LogQuery = call.query
    name = call.path["queue"]
    queue = await broker.store.catalog.queue(name)
    if queue is None:
        raise not_found(f"queue {name} does not exist")
    messages = broker.store.messages
    after, since = _position(query.after), parse_time("from", query.since)
    if after is None:
        after = BEGIN if since is None else await messages.position_at(queue.id, since)
    # The end is read first: a page that reaches it has every message final before the request.
    end = await messages.end(queue.id)
    rows = await messages.after(queue.id, after, query.limit, _PAGE_BYTES)
    last = Position(rows[-1]["txid"], rows[-1]["id"]) if rows else after
    return json(LogPage([_message(row) for row in rows], str(last), None if end is None else str(end)))


def _position(text: str | None) -> Position | None:
    if not text:
        return None
    try:
        position = Position.parse(text)
    except ValueError:
        position = Position(-1, -1)
    if not (0 <= position.txid <= LARGEST and 0 <= position.id <= LARGEST):
        raise bad_request(f"after is {text!r}: use the next of an earlier response, such as 1234-56000")
    return position


def _message(row: dict[str, Any]) -> LoggedMessage:
    return LoggedMessage(
        transaction_id=row["transaction_id"],
        trace_id=row["trace_id"],
        partition=row["partition"],
        created_at=iso_time(row["created_at"]),
        data=Raw(row["payload"].encode()),
        headers=from_text(row["headers"]) or UNSET,
    )


ROUTES = [
    Route(
        "GET",
        "/api/v1/resources/queues/:queue/log",
        read_log,
        "Read the messages of a queue in log order",
        Right.QUEUE_READ,
        {200: LogPage},
        query=LogQuery,
    ),
]
