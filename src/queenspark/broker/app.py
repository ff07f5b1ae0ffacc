"""The route table and the application."""

from __future__ import annotations

from . import (
    ack,
    active_windows,
    attention,
    audit,
    explanations,
    groups,
    jobs,
    keys,
    me,
    messages,
    openapi,
    pop,
    push,
    queue_log,
    queues,
    statements,
    stream_definition,
    stream_resources,
    streams,
    system,
    system_info,
    timeline,
)
from .broker import Broker
from .http import Admit, App, Cors, OpenGate, Route

NOT_SERVED = {
    "/streams/v1/": "the routes /streams/v1 of Queen's newer SDK are not served here: define a stream with"
    " /api/v1/stream/define and take its windows with /api/v1/stream/poll, or run a SQL job (/api/v1/sql)",
}


def routes() -> list[Route]:
    """Every route of the API."""
    modules = (
        push, pop, ack, queues, queue_log, groups, messages, stream_definition, streams, stream_resources,
        active_windows, timeline, statements, jobs, explanations, attention, system_info, system, me, keys,
        audit,
    )  # fmt: skip
    found = [route for module in modules for route in module.ROUTES]
    return [*found, openapi.route(found)]


def application(broker: Broker, admit: Admit | None = None) -> App:
    """Build the ASGI application of a broker; `admit`, by default its gate's, runs before every handler."""
    settings = broker.settings
    cors = Cors(settings.cors_origins)
    gate = broker.gate or OpenGate(cors, settings.host)
    return App(
        broker,
        routes(),
        max_body_bytes=settings.max_body_bytes,
        max_depth=settings.max_json_depth,
        cors=cors,
        admit=admit or gate.admit,
        not_served=NOT_SERVED,
    )
