"""Producers and consumers at work while the broker and PostgreSQL are killed again and again."""

import asyncio
import time
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from queenspark.embedded import EmbeddedPostgres
from tests.broker_process import Broker
from tests.conftest import StartBroker
from tests.crash.consumer import Consumer
from tests.crash.crashes import Crashes
from tests.crash.ledger import Ledger, by_partition
from tests.crash.producer import Producer

PRODUCERS = 8
CONSUMERS = 4
LEASE_SECONDS = 1
"""Short, so that leases of a killed broker soon expire."""

QUEUE = "crashes"


@dataclass(frozen=True)
class Size:
    """The size of a run."""

    messages: int
    broker_kills: int
    postgres_kills: int


SMALL = Size(messages=4_000, broker_kills=2, postgres_kills=1)
FULL = Size(messages=100_000, broker_kills=20, postgres_kills=10)


@pytest.mark.crash
@pytest.mark.timeout(1800)
def test_nothing_is_lost_or_doubled_or_reordered_by_crashes(
    durable_postgres: EmbeddedPostgres, broker: StartBroker, full_size: bool
) -> None:
    size = FULL if full_size else SMALL
    killed = broker(database_url=durable_postgres.url)
    configure(killed.url)
    ledger = Ledger(size.messages)
    crashes = Crashes(killed, durable_postgres, size.broker_kills, size.postgres_kills)
    producers = [Producer(number, killed.url, QUEUE, ledger) for number in range(PRODUCERS)]
    asyncio.run(work(killed, ledger, crashes, producers))

    assert crashes.happened == size.broker_kills + size.postgres_kills
    assert sum(producer.sent_again for producer in producers) > 0, "the crashes were felt"
    assert len(ledger.pushed) == size.messages
    assert ledger.delivered == ledger.pushed.keys(), "everything was delivered to the concurrent consumers"
    assert ledger.came_again == [], "nothing that was acked came again"
    assert ledger.changed_id == [], "a message that was pushed again is the one that was pushed first"

    expected = {name: list(range(n)) for producer in producers for name, n in producer.count_of.items()}
    assert asyncio.run(read_log(killed.url)) == expected, "the log has each message once, in order"


def configure(url: str) -> None:
    body = {"queue": QUEUE, "options": {"leaseTime": LEASE_SECONDS, "retryLimit": 1000, "retryDelay": 0}}
    assert httpx2.post(f"{url}/api/v1/configure", json=body).status_code == 200


async def work(broker: Broker, ledger: Ledger, crashes: Crashes, producers: list[Producer]) -> None:
    """Produce, crash and consume at the same time, until everything is consumed."""
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for _ in range(CONSUMERS):
            group.create_task(Consumer(broker.url, QUEUE, "live", ledger).run(stop))
        async with asyncio.TaskGroup() as producing:
            producing.create_task(crashes.run(ledger))
            for producer in producers:
                producing.create_task(producer.run(ledger.total // PRODUCERS))
        await until_finished(ledger)
        stop.set()


async def until_finished(ledger: Ledger) -> None:
    deadline = time.monotonic() + 60 + ledger.total / 1000
    while not ledger.finished:
        assert time.monotonic() < deadline, (
            f"{ledger.total} messages: {len(ledger.pushed)} pushed, {len(ledger.delivered)} delivered, "
            f"{len(ledger.acked)} acked, {len(ledger.unsure)} acks without a response"
        )
        await asyncio.sleep(0.05)


async def read_log(url: str) -> dict[str, list[int]]:
    """Everything in the log, as several consumers of a group that was never there before get it."""
    messages: list[dict[str, Any]] = []

    async def read(http: httpx2.AsyncClient) -> None:
        query: dict[str, str | int] = {
            "batch": 500, "wait": "true", "timeout": 1000, "consumerGroup": "audit", "autoAck": "true",
        }  # fmt: skip
        while (response := await http.get(f"/api/v1/pop/queue/{QUEUE}", params=query)).status_code == 200:
            messages.extend(response.json()["messages"])
        assert response.status_code == 204, response.text

    async with httpx2.AsyncClient(base_url=url, timeout=30.0) as http, asyncio.TaskGroup() as group:
        for _ in range(CONSUMERS):
            group.create_task(read(http))
    return by_partition(messages)
