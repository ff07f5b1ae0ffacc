"""GET /api/v1/audit: administrative acts."""

from __future__ import annotations

import msgspec

from ..store.page import Page
from .broker import Broker
from .http import Call, Response, Right, Route, json
from .paging import OffsetQuery
from .responses.access import Act, ActList
from .times import iso_time, parse_time


class AuditQuery(OffsetQuery):
    """Filters on the acts."""

    caller: str | None = None
    since: str | None = msgspec.field(default=None, name="from")
    until: str | None = msgspec.field(default=None, name="to")


async def list_acts(broker: Broker, call: Call) -> Response:
    """List administrative acts, newest first."""
    query: AuditQuery = call.query
    rows, total = await broker.store.audit.page(
        Page(query.limit, query.offset),
        query.caller.replace("\x00", "") if query.caller else None,
        parse_time("from", query.since),
        parse_time("to", query.until),
    )
    acts = [Act(**{**row, "id": str(row["id"]), "at": iso_time(row["at"])}) for row in rows]
    return json(ActList(acts, total, query.limit, query.offset))


ROUTES = [
    Route(
        "GET",
        "/api/v1/audit",
        list_acts,
        "List administrative operations",
        Right.ACCESS_ADMIN,
        {200: ActList},
        query=AuditQuery,
    ),
]
