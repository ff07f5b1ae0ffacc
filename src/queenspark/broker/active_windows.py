"""GET /api/v1/resources/streams/:stream/windows: windows that consumer groups have not acked."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from ..formats.window_message import decode
from .broker import Broker
from .http import Call, Response, Right, Route, json
from .responses.streams import ActiveWindows
from .stream_resources import STREAMS, NamespaceQuery, stream_of
from .times import iso
from .window import shown_window

_MOST_SKIPPED = 10_000  # the query recomputes all windows for each page


class WindowsQuery(NamespaceQuery, rename="camel"):
    """Filters on the windows of a stream."""

    consumer_group: str | None = None
    state: Literal["leased", "retrying", "waiting", "dead"] | None = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    offset: Annotated[int, Meta(ge=0, le=_MOST_SKIPPED)] = 0


async def windows(broker: Broker, call: Call) -> Response:
    """List windows that groups have not acked, with their state."""
    query: WindowsQuery = call.query
    stream = await stream_of(broker, call)
    rows = await broker.store.streams.active_windows(
        stream, query.consumer_group, query.state, query.limit, query.offset
    )
    return json({"windows": [_window(row) for row in rows]})


def _window(row: dict[str, Any]) -> dict[str, Any]:
    return shown_window(
        decode(row["payload"]),
        state=row["state"],
        consumerGroup=row["group"],
        attempts=row["attempts"],
        error=row["error"],
        sealedAt=iso(row["sealed_at"]),
        leaseHolder=row["lease_holder"],
        leasedAt=iso(row["leased_at"]),
        leaseExpiresAt=iso(row["lease_expires_at"]),
        availableAt=iso(row["available_at"]),
        failedAt=iso(row["failed_at"]),
    )


ROUTES = [
    Route(
        "GET",
        f"{STREAMS}/:stream/windows",
        windows,
        "List windows that groups have not acked",
        Right.STREAM_READ,
        {200: ActiveWindows},
        query=WindowsQuery,
        messages={"state": "state must be leased, retrying, waiting or dead"},
    ),
]
