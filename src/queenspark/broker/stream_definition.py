"""POST /api/v1/stream/define: the desired state of a stream."""

from __future__ import annotations

from typing import Any

import msgspec

from ..formats.definition import (
    DURATION_MS,
    LONGEST_LEASE_MS,
    LONGEST_RETENTION_MS,
    StreamDefinition,
    in_words_of_the_wire,
    to_spec,
)
from ..store.definitions import WINDOW_QUEUES, window_queue
from ..store.names import MOST_NAME
from ..store.streams import Wanted, check_sources
from ..windows.errors import SpecError
from ..windows.event_time import steps
from ..windows.spec import WindowSpec
from .broker import Broker
from .errors import bad_request, not_found
from .http import Call, Response, Right, Route, json
from .limits import check_lease, check_name
from .reach import stream_name
from .responses.streams import StreamDefined
from .stream_query import computed
from .stream_rows import define_rows
from .times import parse_time


async def define(broker: Broker, call: Call) -> Response:
    """Create or redefine a stream."""
    request: StreamDefinition = call.body
    check_name("name", request.name)
    check_name("namespace", request.namespace)
    check_name("name", window_queue(request.namespace, request.name))
    check_lease("window_lease_timeout_ms", request.window_lease_timeout_ms, "milliseconds")
    call.acted_on = stream_name(request.namespace, request.name)
    if not call.may(call.acted_on):
        raise not_found("Stream not found")
    if not request.source_queue_names:
        raise bad_request("source_queue_names is required: name at least one queue")
    for queue in request.source_queue_names:
        check_name("source_queue_names", queue)
        if queue.startswith(WINDOW_QUEUES):
            raise bad_request(
                f"source_queue_names: {queue} is a window queue and cannot be a source;"
                " push results to a regular queue and use that as the source"
            )
    request.event_time = _path(request.event_time)
    spec, start = _spec(request), _start(request.start)
    names = {"success": True, "name": request.name, "namespace": request.namespace, "output": request.output}
    if request.output == "rows":
        return json({**names, **await define_rows(broker, call, start)}, 201)
    return json({**names, **await _define_windows(broker, call, spec, start)}, 201)


async def _define_windows(
    broker: Broker, call: Call, spec: dict[str, Any], start: str | None
) -> dict[str, Any]:
    request: StreamDefinition = call.body
    hidden = {name for name in request.source_queue_names if not call.may(name, Right.QUEUE_READ)}
    check_sources(request.source_queue_names, set(request.source_queue_names) - hidden)
    computing = await computed(broker, request, call.caller) if request.computes else None
    stream = await broker.store.streams.define(
        Wanted(
            namespace=request.namespace,
            name=request.name,
            queues=tuple(dict.fromkeys(request.source_queue_names)),
            partitioned=request.partitioned,
            ordered=request.ordered,
            spec=spec,
            event_time=request.event_time,
            lease_timeout_ms=request.window_lease_timeout_ms,
            window_retention_ms=request.window_retention_ms,
            start=start,
            reset=request.reset,
            **({} if computing is None else computing._asdict()),
        )
    )
    broker.bus.forget(stream.queue)
    return {"stream_id": str(stream.id), "version": stream.version}


def _spec(request: StreamDefinition) -> dict[str, Any]:
    """Build the window spec of a request; raise 400 with the field's wire name."""
    if request.window_duration_ms is None and request.window_type in ("tumbling", "sliding"):
        request.window_duration_ms = DURATION_MS
    if request.emit is None and request.window_type == "rows":
        request.emit = "changes"
    try:
        spec = WindowSpec(clock="ingest" if request.event_time is None else "event", **to_spec(request))
    except SpecError as error:
        raise bad_request(in_words_of_the_wire(str(error))) from error
    decoded: dict[str, Any] = msgspec.json.decode(spec.to_json())
    return decoded


def _path(text: str | None) -> str | None:
    if text is None:
        return None
    if text.startswith("payload."):  # alias of data
        text = f"data.{text.removeprefix('payload.')}"
    if not text or len(text) > MOST_NAME or not all([*steps(text), text != "data."]):
        raise bad_request(
            f"event_time ({text:.100}) must be a path into the payload, such as data.ts or data.order.at"
        )
    return text


def _start(text: str | None) -> str | None:
    if text is None or text in ("earliest", "latest"):
        return text
    time = parse_time("start", text)
    if time is None:
        raise bad_request("start (empty) must be earliest, latest or an ISO 8601 time")
    return time.isoformat()


ROUTES = [
    Route(
        "POST",
        "/api/v1/stream/define",
        define,
        "Create a stream, or redefine it",
        Right.STREAM_ADMIN,
        {201: StreamDefined},
        body=StreamDefinition,
        messages={
            "window_type": "window_type must be tumbling, sliding, session, count or rows",
            "ordered": "ordered must be true or false",
            "late": "late must be process, warn or drop",
            "emit": "emit must be final or changes",
            "columns": "columns must be an object of expressions by name",
            "output": "output must be windows or rows",
            "key": 'key must be an array of expressions, such as ["data.userId"]',
            "where": "where must be a condition, such as data.amount > 0",
            "aggregates": "aggregates must be an object of expressions by name",
            "having": "having must be a condition, such as total > 10",
            "window_lease_timeout_ms": f"window_lease_timeout_ms must be from 1 to {LONGEST_LEASE_MS}, a day",
            "window_retention_ms": f"window_retention_ms must be from 1 to {LONGEST_RETENTION_MS}",
            "source_queue_names": "source_queue_names must be an array of queue names",
        },
    ),
]
