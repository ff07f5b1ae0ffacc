"""GET …/explain: why the next window of a stream or job is not sealed yet."""

from __future__ import annotations

from .broker import Broker
from .errors import not_found
from .explanation import explain
from .http import Call, Response, Right, Route, json
from .jobs import JOBS, find_job
from .responses.explanations import JobExplanation, StreamExplanation
from .stream_resources import STREAMS, NamespaceQuery, stream_of


async def explain_stream(broker: Broker, call: Call) -> Response:
    """Explain why the next window of a stream is not sealed yet."""
    stream = await stream_of(broker, call)
    standing = await broker.store.standings.of(stream.id)
    if standing is None:
        raise not_found("Stream not found")
    return json({
        "stream": stream.name, "namespace": stream.namespace, **await explain(broker, standing)
    })  # fmt: skip


async def explain_job(broker: Broker, call: Call) -> Response:
    """Explain why the next window of a job is not sealed yet, or the next row is not emitted."""
    job = await find_job(broker, call.path["name"])
    standing = await broker.store.standings.of(job.id)
    if standing is None:
        raise not_found(f"job {call.path['name']} does not exist")
    return json({"job": job.name, "namespace": job.namespace, **await explain(broker, standing)})


ROUTES = [
    Route(
        "GET",
        f"{STREAMS}/:stream/explain",
        explain_stream,
        "Why the next window is not sealed yet",
        Right.STREAM_READ,
        {200: StreamExplanation},
        query=NamespaceQuery,
    ),
    Route(
        "GET",
        f"{JOBS}/:name/explain",
        explain_job,
        "Why the next window is not sealed yet",
        Right.JOB_READ,
        {200: JobExplanation},
    ),
]
