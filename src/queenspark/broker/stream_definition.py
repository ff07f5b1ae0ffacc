"""POST /api/v1/stream/define: a stream as it should be."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from ..store.definitions import WINDOW_QUEUES, window_queue
from ..store.names import MOST_NAME
from ..store.streams import Wanted
from ..windows.errors import SpecError
from ..windows.event_time import steps
from ..windows.spec import WindowSpec
from .answers.streams import StreamDefined
from .broker import Broker
from .errors import bad_request
from .http import Answer, Call, Right, Route, json
from .limits import LONGEST_LEASE_MS, LeaseMs, check_name
from .times import parse_time

_MS = 1000  # microseconds
_DURATION_MS = 60_000
#: Fields of a spec as the wire names them.
_FIELDS = {
    "kind": "window_type",
    "duration_us": "window_duration_ms",
    "slide_us": "window_slide_ms",
    "gap_us": "window_gap_ms",
    "size": "window_size_count",
    "step": "window_slide_count",
    "grace_us": "window_grace_period_ms",
    "idle_us": "idle_timeout_ms",
}

Whole = Annotated[int, Meta(ge=-(2**48), le=2**48)]


class DefineRequest(msgspec.Struct):
    """A stream as it should be. What is not sent takes its default."""

    name: str
    namespace: str
    source_queue_names: list[str] = []
    partitioned: bool = False
    window_type: Literal["tumbling", "sliding", "session", "count"] = "tumbling"
    window_duration_ms: Whole | None = None
    window_slide_ms: Whole | None = None
    window_gap_ms: Whole | None = None
    window_size_count: Whole | None = None
    window_slide_count: Whole | None = None
    window_grace_period_ms: Whole = 30_000
    window_lease_timeout_ms: LeaseMs = 60_000
    event_time: str | None = None
    late: Literal["process", "warn", "drop"] = "process"
    idle_timeout_ms: Whole | None = None
    emit_empty: bool = False
    start: str | None = None
    reset: bool = False


async def define(broker: Broker, call: Call) -> Answer:
    """Make a stream, or make it what is wanted."""
    request: DefineRequest = call.body
    check_name("name", request.name)
    check_name("namespace", request.namespace)
    check_name("name", window_queue(request.namespace, request.name))
    if not request.source_queue_names:
        raise bad_request("source_queue_names is required: name at least one queue")
    for queue in request.source_queue_names:
        check_name("source_queue_names", queue)
        if queue.startswith(WINDOW_QUEUES):
            raise bad_request(
                f"source_queue_names: {queue} holds the windows of a stream;"
                " push what you make of them to a queue and name that"
            )
    stream = await broker.store.streams.define(
        Wanted(
            namespace=request.namespace,
            name=request.name,
            queues=tuple(dict.fromkeys(request.source_queue_names)),
            partitioned=request.partitioned,
            spec=_spec(request),
            event_time=_path(request.event_time),
            lease_timeout_ms=request.window_lease_timeout_ms,
            start=_start(request.start),
            reset=request.reset,
        )
    )
    broker.bus.forget(stream.queue)
    body = {"success": True, "stream_id": str(stream.id), "name": stream.name, "namespace": stream.namespace}
    return json({**body, "version": stream.version}, 201)


def _spec(request: DefineRequest) -> dict[str, Any]:
    """The windows that a request asks for, or 400 that names the field as the wire does."""
    duration = request.window_duration_ms
    if duration is None and request.window_type in ("tumbling", "sliding"):
        duration = _DURATION_MS
    times: dict[str, Any] = {
        "duration_us": duration,
        "slide_us": request.window_slide_ms,
        "gap_us": request.window_gap_ms,
        "grace_us": request.window_grace_period_ms,
        "idle_us": request.idle_timeout_ms,
    }
    try:
        spec = WindowSpec(
            kind=request.window_type,
            size=request.window_size_count,
            step=request.window_slide_count,
            clock="ingest" if request.event_time is None else "event",
            late=request.late,
            emit_empty=request.emit_empty,
            **{name: value * _MS for name, value in times.items() if value is not None},
        )
    except SpecError as error:
        raise bad_request(_in_words_of_the_wire(str(error))) from error
    decoded: dict[str, Any] = msgspec.json.decode(spec.to_json())
    return decoded


def _in_words_of_the_wire(reason: str) -> str:
    if "_us" in reason:
        reason = re.sub(r"-?\d{4,}", lambda number: str(int(number[0]) // _MS), reason)
    return re.sub(r"\w+", lambda word: _FIELDS.get(word[0], word[0]), reason)


def _path(text: str | None) -> str | None:
    if text is None:
        return None
    if not text or len(text) > MOST_NAME or not all([*steps(text), text != "data."]):
        raise bad_request("event_time must be a path into the payload, such as data.ts or data.order.at")
    return text


def _start(text: str | None) -> str | None:
    if text is None or text in ("earliest", "latest"):
        return text
    time = parse_time("start", text)
    if time is None:
        raise bad_request("start must be earliest, latest or an ISO 8601 time")
    return time.isoformat()


ROUTES = [
    Route(
        "POST",
        "/api/v1/stream/define",
        define,
        "Make a stream, or make it what is wanted",
        Right.STREAM_ADMIN,
        {201: StreamDefined},
        body=DefineRequest,
        messages={
            "window_type": "window_type must be tumbling, sliding, session or count",
            "late": "late must be process, warn or drop",
            "window_lease_timeout_ms": f"window_lease_timeout_ms must be from 1 to {LONGEST_LEASE_MS}",
            "source_queue_names": "source_queue_names must be an array of queue names",
        },
    ),
]
