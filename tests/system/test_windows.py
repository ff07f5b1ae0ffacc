"""The output of the whole system equals the oracle's."""

import random
import time
from typing import Any

import pytest

from tests.system.system import System, as_rows, oracle_rows

SHAPES: dict[str, dict[str, Any]] = {
    "tumbling": {"window_duration_ms": 400},
    "sliding": {"window_duration_ms": 600, "window_slide_ms": 200},
    "session": {"window_gap_ms": 150},
    "count": {"window_size_count": 7, "window_slide_count": 3},
}


@pytest.mark.together
@pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "global"])
@pytest.mark.parametrize("kind", SHAPES)
def test_ingest_time(system: System, kind: str, partitioned: bool) -> None:
    """Several sources, disorder of commits, silence at the end."""
    chance = random.Random(f"{kind} {partitioned}")
    stream = system.define(kind, queues=2, partitioned=partitioned, grace_ms=100, **SHAPES[kind])
    for _ in range(12):
        items = [
            {"queue": chance.choice(stream.queues), "partition": f"k{chance.randrange(3)}", "payload": number}
            for number in range(chance.randrange(1, 9))
        ]
        system.api.push_items(items)
        time.sleep(chance.choice((0, 0, 0.02, 0.2)))
    records = system.records(stream)
    expected = system.expected(stream, records)
    found = system.wait_for(stream, len(expected))
    assert as_rows(found) == oracle_rows(expected)
    delivered = system.drain(stream, len(expected))
    assert sum(len(window["messages"]) for window in delivered) == sum(row.count for row in expected)


@pytest.mark.together
@pytest.mark.parametrize("late", ["process", "warn", "drop"])
@pytest.mark.parametrize("kind", SHAPES)
def test_event_time(system: System, kind: str, late: str) -> None:
    """Disorder, late records, records without a time, and silence."""
    chance = random.Random(f"{kind} {late}")
    stream = system.define(
        kind, queues=2, grace_ms=300, event_time="data.at", late=late, idle_timeout_ms=1000, **SHAPES[kind]
    )
    begin = system.now_us() // 1000
    for number in range(60):
        at: Any = begin + number * 40 + chance.choice((0, 0, 0, -50, -200, -2500, 30))
        if chance.random() < 0.05:
            at = chance.choice((None, "never", {}))
        item = {
            "queue": chance.choice(stream.queues),
            "partition": f"k{chance.randrange(2)}",
            "payload": {"at": at},
        }
        system.api.push_items([item])
        time.sleep(0.01)

    def time_of(payload: Any) -> int | None:
        return payload["at"] * 1000 if isinstance(payload["at"], int) else None

    records = system.records(stream, time_of)
    expected = system.expected(stream, records)
    found = system.wait_for(stream, len(expected))
    assert as_rows(found) == oracle_rows(expected)
    dead = system.api.read(f"/api/v1/resources/streams/{stream.name}/dead")
    assert len(dead["dead"]) == sum(record.event_us is None for record in records)


def test_the_last_window_is_delivered_although_nothing_follows(system: System) -> None:
    """No further push comes: silence closes it."""
    stream = system.define("tumbling", grace_ms=200, window_duration_ms=1000)
    system.api.push(stream.queues[0], 1, partition="k")
    window = system.poll(stream, timeout=60_000)
    assert window is not None
    assert window["count"] == 1


@pytest.mark.together
def test_consumers_of_several_groups_share_windows(system: System) -> None:
    """Each group gets each window once, whichever of its consumers polls it."""
    stream = system.define("tumbling", grace_ms=0, window_duration_ms=300)
    for number in range(20):
        system.api.push(stream.queues[0], number, partition=f"k{number % 4}")
        time.sleep(0.03)
    expected = system.expected(stream, system.records(stream))
    system.wait_for(stream, len(expected))
    for group in ("a", "b"):
        taken = system.drain(stream, len(expected), group)
        assert sorted(window["id"] for window in taken) == sorted(row.window_id for row in expected)
        assert system.poll(stream, group, timeout=300) is None
