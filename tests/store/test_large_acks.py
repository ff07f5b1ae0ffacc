"""Acks of a large batch cost as much as the batch, for any status."""

from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import psycopg
import pytest

from queenspark.store.delivery import Ack
from queenspark.store.queries import query
from queenspark.store.store import Store
from tests.database import connect
from tests.store.desk import Desk, names

pytestmark = pytest.mark.anyio

#: `dlq` is left out: each dead letter is written to a table of its own.
STATUSES = ("completed", "failed", "retry", "completed")

Connection = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def acking(store: Store) -> Iterator[Connection]:
    """A connection whose server process is known."""
    with connect(store.database.url, autocommit=False) as connection:
        yield connection


def cpu_seconds(connection: Connection) -> float:
    """The CPU time that the server has used for a connection."""
    nanoseconds = Path(f"/proc/{connection.info.backend_pid}/schedstat").read_text().split()[0]
    return int(nanoseconds) / 1e9


async def cost(desk: Desk, acking: Connection, count: int) -> float:
    """The minimum CPU time of three mixed acks of this many messages."""
    group = f"g{count}"
    await desk.push(*(f"{group}-{n}" for n in range(count)), partition=group)
    desk.run("ANALYZE queenspark.messages")  # as autovacuum does; the servers of the tests have none
    batch = await desk.pop(count, group, partition=group)
    assert batch is not None
    assert len(batch.messages) == count
    params: dict[str, Any] = {
        "partition_ids": [batch.messages[0].partition_id], "groups": [group], "lease_ids": [batch.lease_id],
        "firsts": [1], "lasts": [count], "transaction_ids": names(batch), "final": False,
        "errors": ["why"] * count,
        "statuses": [status for status, _ in zip(cycle(STATUSES), range(count))],
    }  # fmt: skip
    costs = []
    for _ in range(3):
        begun = cpu_seconds(acking)
        rows = acking.execute(query("ack"), params).fetchall()
        acking.rollback()
        costs.append(cpu_seconds(acking) - begun)
        outcomes = ["retry" if status == "failed" else status for status in params["statuses"]]
        assert [row[0] for row in rows] == outcomes
    return min(costs)


async def test_a_mixed_ack_costs_as_much_as_its_messages(desk: Desk, acking: Connection) -> None:
    """Five times the messages are about five times the work; a loop over arrays would make it 25 times."""
    await cost(desk, acking, 100)  # plans are made
    small, large = await cost(desk, acking, 2000), await cost(desk, acking, 10_000)
    assert large < 12 * small


async def test_a_message_is_acked_once_per_request(desk: Desk) -> None:
    """The first one counts."""
    await desk.push("a", "b")
    batch = await desk.pop()
    assert batch is not None
    acks = [
        Ack(batch.messages[0].partition_id, name, "g", batch.lease_id, status, None)
        for name, status in (("a", "failed"), ("b", "completed"), ("a", "completed"), ("b", "dlq"))
    ]
    results = await desk.store.deliverer.ack(acks)
    assert [result.outcome for result in results] == ["retry", "completed", "repeated", "repeated"]
    assert [result.attempts for result in results] == [1, 0, 0, 0]
    desk.end_waits()
    assert await desk.popped() == ["a"]
