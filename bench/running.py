"""Rate of a running streaming query without its start, for our queries and for plain Spark."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from pyspark import SparkContext
from pyspark.sql.streaming.query import StreamingQuery

from bench.cpu import SYSTEM, TICKS, USER, all_stats, tree_seconds


class Run(NamedTuple):
    """Seconds of a run, seconds after its first batch, and processor seconds after it."""

    seconds: float
    running: float
    used: dict[str, float]


def spent(postgres_pid: int | None = None) -> dict[str, float]:
    """Processor seconds so far: of Java, of Spark's Python processes, and of PostgreSQL."""
    java = SparkContext._gateway.proc.pid  # type: ignore[union-attr]
    own = sum(int(all_stats()[java][field]) for field in (USER, SYSTEM)) / TICKS
    found = {"Java": own, "Python": tree_seconds(java) - own}
    return found if postgres_pid is None else {**found, "PostgreSQL": tree_seconds(postgres_pid)}


def watch(query: StreamingQuery, is_over: Callable[[], bool], postgres_pid: int | None = None) -> Run:
    """Wait until a query that was just started is over; its first batch includes the start of everything."""
    began = time.monotonic()
    at_first: dict[str, float] = {}
    while not is_over():
        if query.exception() is not None:
            raise RuntimeError(str(query.exception()))
        if not at_first and query.lastProgress is not None:
            at_first = spent(postgres_pid)
        time.sleep(0.02)
    seconds = time.monotonic() - began
    at_end = spent(postgres_pid)
    used = {part: after - at_first.get(part, after) for part, after in at_end.items()}
    ends = [
        datetime.fromisoformat(batch["timestamp"])
        + timedelta(milliseconds=batch["durationMs"]["triggerExecution"])
        for batch in query.recentProgress
        if "addBatch" in batch["durationMs"]
    ]
    return Run(seconds, (ends[-1] - ends[0]).total_seconds(), used)
