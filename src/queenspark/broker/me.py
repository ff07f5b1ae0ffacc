"""GET /api/v1/me: the caller's identity."""

from __future__ import annotations

from .broker import Broker
from .http import Call, Response, Right, Route, json
from .responses.access import Me


async def me(broker: Broker, call: Call) -> Response:
    """Return the caller's identity and rights."""
    caller = call.caller
    return json(
        Me(
            caller.name,
            caller.kind,
            caller.role,
            None if caller.scopes is None else [str(scope) for scope in caller.scopes],
            sorted(caller.rights),
            broker.gate is not None,
        )
    )


ROUTES = [
    Route("GET", "/api/v1/me", me, "The identity and rights of the caller", Right.KNOWN, {200: Me}),
]
