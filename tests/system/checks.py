"""Observations of a running system, and waits for them."""

import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from tests.streams.stream_api import data_of
from tests.system.system import Stream, System, as_rows, oracle_rows
from tests.wire.api import Json


def wait_until(system: System, time_us: int) -> None:
    """Wait for the database's clock."""
    while (left := time_us - system.now_us()) > 0:
        time.sleep(left / 1e6)


def all_data(windows: Iterable[Json]) -> list[Any]:
    """The payloads of all windows, sorted."""
    return sorted((data for window in windows for data in data_of(window)), key=str)


def matches(system: System, stream: Stream) -> list[Json]:
    """Take all windows; they must be those of the oracle."""
    expected = system.expected(stream, system.records(stream))
    windows = system.take_all(stream, len(expected))
    assert as_rows(system.sealed(stream)) == oracle_rows(expected)
    return windows


def message_count(system: System, queue: str) -> int:
    ((count,),) = system.run(
        "SELECT count(*) FROM queenspark.messages m JOIN queenspark.queues q ON q.id = m.queue_id"
        " WHERE q.name = %s",
        queue,
    )
    return int(count)


def progress(system: System, stream: Stream) -> Json:
    found: Json = system.api.read(f"/api/v1/resources/streams/{stream.name}")["progress"]
    return found


def settled(system: System, stream: Stream) -> int:
    """Number of windows once all are sealed and no new one appeared for a while; 0 before."""
    if not all_read(system, stream):
        time.sleep(0.1)
        return 0
    before = len(system.sealed(stream))
    time.sleep(1.2)  # the reported lag may be a second old
    return before if all_read(system, stream) and before == len(system.sealed(stream)) else 0


def all_read(system: System, stream: Stream) -> bool:
    """Whether all records are read and only incomplete count windows are open."""
    ((open_windows,),) = system.run(
        "SELECT coalesce(sum(t.open_windows), 0) FROM queenspark.stream_stats t"
        " JOIN queenspark.streams s ON s.id = t.stream_id"
        " WHERE s.id = %s AND NOT (%s AND t.version = s.version)",
        stream.id, stream.spec.kind == "count",
    )  # fmt: skip
    return not open_windows and not progress(system, stream)["lagSeconds"]


def iso(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC).isoformat()}"
