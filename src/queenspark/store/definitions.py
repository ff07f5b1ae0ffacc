"""Definitions of streams: the append-only log of every change, and what it says as of a moment.

The pipeline's offset names the last `seq` that it knows; a batch that is run again asks for the definitions
as of that seq and sees the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from ..windows.spec import WindowSpec

STREAMS_QUERY = "streams"
"""The name under which the query that serves all streams reports its statistics."""

WINDOW_QUEUES = "windows:"
"""What the names of window queues begin with; no other queue's name may."""

DEFAULT_NAMESPACE = "default"
"""The namespace of jobs whose name has none."""


def job_query_name(stream_id: int, version: int) -> str:
    """The name of the query that a version of a job has for itself, and of its statistics."""
    return f"job-{stream_id}-{version}"


class Cut(msgspec.Struct, frozen=True):
    """A position in the log that divides two versions of a stream."""

    txid: int
    id: int


class Repeats(msgspec.Struct, frozen=True):
    """Until when a version may compute rows that an earlier one has given out already.

    That one failed in some buckets while others went on, so no single position divides the two. A batch that
    begins before the position or the time looks for rows of the versions from `first` on, which are in the
    log after the transaction `after`.
    """

    txid: int
    id: int
    us: int
    first: int
    after: int


class Source(msgspec.Struct, frozen=True):
    """A queue that a stream reads, from after a position."""

    queue_id: int
    queue: str
    txid: int
    id: int


class Outside(msgspec.Struct, frozen=True):
    """A source or sink outside: its name, its connector, and the other options of its statement."""

    name: str
    connector: str
    options: dict[str, str] = {}


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """What a version of a stream is. `spec` is a WindowSpec as JSON."""

    name: str
    namespace: str
    partitioned: bool
    spec: dict[str, Any]
    event_time: str | None
    sources: tuple[Source, ...]
    #: Whether a group gets the windows of a key one after the other.
    ordered: bool = True
    #: Where the stream begins: earliest, latest or an ISO time; a reset begins there again.
    start: str = "earliest"
    #: Only windows that start at or after this time come out.
    from_us: int | None = None
    #: Only windows that start before this time come out.
    until_us: int | None = None
    #: Records after this position belong to the next version.
    until: Cut | None = None
    #: What it computes: a kept query (sql/planning/frozen.py). None: windows over whole messages.
    query: dict[str, Any] | None = None
    #: What a stream of windows was asked to compute, in canonical SQL; the query is made of it.
    key: tuple[str, ...] = ()
    where: str | None = None
    aggregates: dict[str, str] = {}
    having: str | None = None
    #: Whether it keeps its position and reads nothing.
    paused: bool = False
    #: It gives out nothing before it has read up to this position: the version before it does.
    emits_after: Cut | None = None
    #: Why the version began, when nobody asked for it; for people.
    notice: str | None = None
    #: Rows that the version before may have given out, where that one had failed.
    repeats: Repeats | None = None
    #: The source that it reads instead of queues, and the sink that its rows go to instead of its queue.
    reads: Outside | None = None
    writes: Outside | None = None

    @property
    def runs_alone(self) -> bool:
        """Whether it has a Spark query of its own; the streams query does not know it."""
        return self.reads is not None or self.writes is not None


class Definition(msgspec.Struct, frozen=True):
    """One row of the log of definitions."""

    seq: int
    stream_id: int
    version: int
    body: Body
    created_at: datetime


def has_windows(body: Body) -> bool:
    """Whether its output is windows of messages, not rows."""
    return body.query is None or body.query.get("output") == "windows"


def spec_of(body: Body) -> WindowSpec:
    """The windows of a version."""
    return msgspec.convert(body.spec, WindowSpec)


def to_definitions(rows: Iterable[tuple[Any, ...]]) -> list[Definition]:
    """Definitions from rows of `definitions_as_of`; deleted ones are left out."""
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
    """Namespace and name of the stream whose window queue it is; None for other queues."""
    if not queue.startswith(WINDOW_QUEUES):
        return None
    namespace, _, name = queue.removeprefix(WINDOW_QUEUES).partition("/")
    return namespace.replace("%2F", "/").replace("%25", "%"), name


def job_name(namespace: str, name: str) -> str:
    """The full name of a job, which its queue has too."""
    return name if namespace == DEFAULT_NAMESPACE else f"{namespace}.{name}"


def sink_queue(full_name: str) -> str:
    """The name of the queue of a job that writes to a sink; nothing is pushed to it, and nobody sees it."""
    return f"{WINDOW_QUEUES}%sink/{full_name}"


def temporary_queue(name: str) -> str:
    """The name of a temporary job's queue. No stream has it: in names of window queues, % is escaped."""
    return f"{WINDOW_QUEUES}%select/{name}"
