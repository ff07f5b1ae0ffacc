"""Definitions of streams: an append-only log of changes, readable as of any change.

The pipeline's offset contains the last known `seq`; a batch that is rerun reads the definitions as of that
seq and sees the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from ..windows.spec import WindowSpec

STREAMS_QUERY = "streams"
"""The name under which the streams query reports its statistics."""

WINDOW_QUEUES = "windows:"
"""The name prefix of window queues, reserved for them."""

DEFAULT_NAMESPACE = "default"
"""The namespace of jobs without one in their name."""


def job_query_name(stream_id: int, version: int) -> str:
    """The name of the query that a version of a job has for itself, and of its statistics."""
    return f"job-{stream_id}-{version}"


class Cut(msgspec.Struct, frozen=True):
    """A position in the log that separates two versions of a stream."""

    txid: int
    id: int


class Repeats(msgspec.Struct, frozen=True):
    """The range in which a version may recompute rows that an earlier one already emitted.

    The earlier version failed in some buckets while others continued, so no single position separates the
    two. A batch that starts before the position or the time checks for rows of the versions since `first`,
    which are in the log after the transaction `after`.
    """

    txid: int
    id: int
    us: int
    first: int
    after: int


class Source(msgspec.Struct, frozen=True):
    """A source queue of a stream, with the position to read from."""

    queue_id: int
    queue: str
    txid: int
    id: int


class Outside(msgspec.Struct, frozen=True):
    """An external source or sink: its name, its connector, and the other options of its statement."""

    name: str
    connector: str
    options: dict[str, str] = {}


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """The definition of a version of a stream. `spec` is a WindowSpec as JSON."""

    name: str
    namespace: str
    partitioned: bool
    spec: dict[str, Any]
    event_time: str | None
    sources: tuple[Source, ...]
    #: Whether a group gets the windows of a key in order.
    ordered: bool = True
    #: Where the stream starts: earliest, latest or an ISO time; a reset starts there again.
    start: str = "earliest"
    #: Only windows that start at or after this time are emitted.
    from_us: int | None = None
    #: Only windows that start before this time are emitted.
    until_us: int | None = None
    #: Records after this position belong to the next version.
    until: Cut | None = None
    #: Its computation: a stored query (sql/planning/frozen.py). None: windows over whole messages.
    query: dict[str, Any] | None = None
    #: The expressions of a stream that computes, in canonical SQL; the source of `query`.
    columns: dict[str, str] = {}
    key: tuple[str, ...] = ()
    where: str | None = None
    aggregates: dict[str, str] = {}
    having: str | None = None
    #: Whether it keeps its position and reads nothing.
    paused: bool = False
    #: Nothing is emitted up to this position: the previous version does that.
    emits_after: Cut | None = None
    #: Why this version was started automatically; for people.
    notice: str | None = None
    #: Rows that the previous version may have emitted before it failed.
    repeats: Repeats | None = None
    #: The external source that replaces its queues, and the sink that replaces its output queue.
    reads: Outside | None = None
    writes: Outside | None = None

    @property
    def runs_alone(self) -> bool:
        """Whether it has its own Spark query, outside the streams query."""
        return self.reads is not None or self.writes is not None


class Definition(msgspec.Struct, frozen=True):
    """One row of the definition log."""

    seq: int
    stream_id: int
    version: int
    body: Body
    created_at: datetime


def has_windows(body: Body) -> bool:
    """Whether its output is windows of messages, not rows."""
    return body.query is None or body.query.get("output") == "windows"


def spec_of(body: Body) -> WindowSpec:
    """Return the window spec of a version."""
    return msgspec.convert(body.spec, WindowSpec)


def to_definitions(rows: Iterable[tuple[Any, ...]]) -> list[Definition]:
    """Build definitions from rows of `definitions_as_of`, skipping deleted ones."""
    return [
        Definition(seq, stream_id, version, msgspec.convert(body, Body), created_at)
        for seq, stream_id, version, body, created_at in rows
        if body is not None
    ]


def window_queue(namespace: str, name: str) -> str:
    """The name of a stream's window queue."""
    escaped = namespace.replace("%", "%25").replace("/", "%2F")
    return f"{WINDOW_QUEUES}{escaped}/{name}"


def stream_of_queue(queue: str) -> tuple[str, str] | None:
    """Return namespace and name of the stream of a window queue; None for other queues."""
    if not queue.startswith(WINDOW_QUEUES) or queue.startswith((sink_queue(""), temporary_queue(""))):
        return None
    namespace, _, name = queue.removeprefix(WINDOW_QUEUES).partition("/")
    return namespace.replace("%2F", "/").replace("%25", "%"), name


def job_name(namespace: str, name: str) -> str:
    """The full name of a job, also the name of its queue."""
    return name if namespace == DEFAULT_NAMESPACE else f"{namespace}.{name}"


def sink_queue(full_name: str) -> str:
    """The queue name of a job that writes to a sink; the queue stays empty and hidden."""
    return f"{WINDOW_QUEUES}%sink/{full_name}"


def temporary_queue(name: str) -> str:
    """The queue name of a temporary job. It cannot clash with a stream: window queue names escape %."""
    return f"{WINDOW_QUEUES}%select/{name}"
