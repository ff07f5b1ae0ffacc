"""The queues, streams, jobs and groups of a run."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.system.system import Stream, System
from tests.windows.oracle import Aggregate
from tests.wire.sql import Sql

PRODUCERS = ("one", "two")
QUEUES = ("left", "right")
RELAYED = "relayed"
USERS = 200
LEASE_SECONDS = 5

#: Groups of consumers: name, queue.
GROUPS = (("workers", "left"), ("workers", "right"), ("audit", "left"))
#: The group that moves messages to another queue, and its queue.
RELAY = ("relay", "right")

_LEASE = {"window_lease_timeout_ms": LEASE_SECONDS * 1000}
STREAMS: dict[str, dict[str, Any]] = {
    "tumbling": {"kind": "tumbling", "grace_ms": 200, "window_duration_ms": 5000},
    "sliding": {
        "kind": "sliding", "grace_ms": 100, "window_duration_ms": 4000, "window_slide_ms": 2000,
        "partitioned": False,
    },
    "session": {"kind": "session", "grace_ms": 0, "window_gap_ms": 1500},
    "count": {"kind": "count", "window_size_count": 7, "window_slide_count": 5, "sources": ("left",)},
    "event": {
        "kind": "tumbling", "grace_ms": 500, "event_time": "data.at", "late": "process",
        "window_duration_ms": 5000, "idle_timeout_ms": 2000,
    },
}  # fmt: skip
#: Groups of streams: name, stream.
WINDOW_GROUPS = (*(("a", name) for name in STREAMS), ("b", "tumbling"))

SCHEMA = "create stream clicks (user string, n bigint, at timestamp) with (queue = 'left')"
_WINDOW = (
    "select user, window_start as b, window_end as e, count(*) as c, sum(n) as s from clicks group by user"
)
_OPTIONS = "with (grace = '2s', idle_timeout = '5s', keep = '10m', late = '{late}')"
_BUFFER = "over (rows window buffer 3 rows partition by user)"
JOBS = {
    "kept": "select user, n from clicks where n % 3 = 0 with (partition_by = 'user')",
    "totals": f"{_WINDOW} window tumbling(at, 10s) " + _OPTIONS.format(late="drop"),
    "revised": f"{_WINDOW} window sliding(at, 10s, 5s) " + _OPTIONS.format(late="process"),
    "visits": f"{_WINDOW} window session(at, 2s) " + _OPTIONS.format(late="process"),
    "changes": f"{_WINDOW} window tumbling(at, 10s) emit changes " + _OPTIONS.format(late="process"),
    "counts": "select user, count(*) as c, sum(n) as s from clicks group by user window count(5)",
    "groups": "select user, count(*) as c, sum(n) as s from clicks group by user",
    "buffers": f"select user, n, lag(n, 2) {_BUFFER} as l, sum(n) {_BUFFER} as s from clicks",
    "sixths": "select user, n from kept where n % 2 = 0 with (partition_by = 'user')",
    "chained": "select window_start as b, sum(c) as c, count(*) as r from totals window tumbling(20s)"
    " with (keep = '1d')",
}


def define(system: System) -> list[Stream]:
    """Define everything; return the streams with their specs for the oracle."""
    options: dict[str, Any] = {"leaseTime": LEASE_SECONDS, "retryLimit": 1_000_000, "retryDelay": 0}
    for queue in (*QUEUES, RELAYED):
        system.api.configure(queue, **options)
    streams = []
    for name, fields in STREAMS.items():
        sources: Sequence[str] = fields.get("sources", QUEUES)
        stream = system.define(**{**fields, **_LEASE, "name": name, "sources": sources})
        # `define` configures its sources with default options.
        stream.spec = replace(stream.spec, aggregates=(Aggregate("sum", "n", "n"),))
        streams.append(stream)
    for queue in QUEUES:
        system.api.configure(queue, **options)
    sql = Sql(system.api)
    sql(SCHEMA)
    for name, query in JOBS.items():
        sql.one(f"create stream {name} as {query}")
    return streams
