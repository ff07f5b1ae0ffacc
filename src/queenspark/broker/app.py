"""All routes, and the application made of them."""

from __future__ import annotations

from . import (
    ack,
    active_windows,
    explanations,
    groups,
    jobs,
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
)
from .broker import Broker
from .http import Admit, App, Cors, Route, admit_everybody


def routes() -> list[Route]:
    """Every route of the API."""
    modules = (
        push, pop, ack, queues, queue_log, groups, messages, stream_definition, streams, stream_resources,
        active_windows, statements, jobs, explanations, system,
    )  # fmt: skip
    found = [route for module in modules for route in module.ROUTES]
    return [*found, openapi.route(found)]


def application(broker: Broker, admit: Admit = admit_everybody) -> App:
    """The ASGI application of a broker; `admit` runs before every handler."""
    settings = broker.settings
    return App(
        broker,
        routes(),
        max_body_bytes=settings.max_body_bytes,
        max_depth=settings.max_json_depth,
        cors=Cors(settings.cors_origins),
        admit=admit,
    )
