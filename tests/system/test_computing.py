"""Streams that compute, through the whole system: push over HTTP, Spark, poll."""

import random
from collections import defaultdict
from typing import Any

import pytest

from tests.system.system import System


@pytest.mark.together
def test_totals_by_a_payload_key(system: System) -> None:
    """Random records of several partitions and queues: every window has its sum and exactly its messages."""
    chance = random.Random(7)
    records: list[dict[str, Any]] = [
        {"user": chance.choice(["ann", "ben", None]), "n": chance.randrange(-3, 10), "at": number * 700}
        for number in range(60)
    ]
    queue = f"computing-{random.SystemRandom().randrange(10**9)}"
    first, rest = records[:30], records[30:]
    system.api.push(queue, *first, partition="p1")
    body = {
        "name": queue, "namespace": "tests", "source_queue_names": [queue], "key": ["data.user"],
        "where": "data.n > 0", "aggregates": {"total": "sum(data.n)"}, "event_time": "data.at",
        "window_duration_ms": 10_000, "window_grace_period_ms": 0, "idle_timeout_ms": 500,
    }  # fmt: skip
    assert system.api.post("/api/v1/stream/define", body).status_code == 201
    system.api.push(queue, *rest, partition="p2")
    expected: dict[tuple[str, int], list[int]] = defaultdict(list)
    for record in records:
        if record["n"] > 0:
            key = "[null]" if record["user"] is None else record["user"]
            expected[key, record["at"] // 10_000].append(record["n"])
    found: dict[tuple[str, int], list[int]] = {}
    while len(found) < len(expected):
        poll = {"streamName": queue, "consumerGroup": "g", "timeout": 60_000}
        response = system.api.post("/api/v1/stream/poll", poll)
        assert response.status_code == 200, system.pipeline.log()
        window = response.json()["window"]
        numbers = [message["data"]["n"] for message in window["messages"]]
        assert window["aggregates"] == {"total": sum(numbers)}
        found[window["key"], window["messages"][0]["data"]["at"] // 10_000] = numbers
        system.ack(window)
    assert found == expected
