"""A persistent producer: each batch is retried until it is acknowledged."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx2

from tests.crash.ledger import Ledger

PARTITIONS = 3
"""Partitions of each producer, its own alone, so that it decides their order."""

BATCH = 10
PAUSE = 0.05
"""Seconds before a batch is sent again."""

PATIENCE = httpx2.Timeout(15.0)


class Producer:
    """Pushes its share of the messages in small batches, one after the other."""

    def __init__(self, number: int, url: str, queue: str, ledger: Ledger) -> None:
        self._number = number
        self._url = url
        self._queue = queue
        self._ledger = ledger
        self.sent_again = 0
        self.count_of: Counter[str] = Counter()

    async def run(self, total: int) -> None:
        """Push `total` messages."""
        async with httpx2.AsyncClient(base_url=self._url, timeout=PATIENCE) as http:
            for items in self._batches(total):
                await self._push(http, items)

    def _batches(self, total: int) -> Iterator[list[dict[str, Any]]]:
        for batch, start in enumerate(range(0, total, BATCH)):
            numbers = range(start, min(start + BATCH, total))
            # Most batches go to one partition, every fifth to all of them.
            spread = batch % 5 == 4
            yield [self._item((number if spread else batch) % PARTITIONS) for number in numbers]

    def _item(self, partition: int) -> dict[str, Any]:
        name = f"producer-{self._number}-{partition}"
        number = self.count_of[name]
        self.count_of[name] += 1
        transaction_id = f"{name}-{number}"
        payload = {"number": number}
        return {"queue": self._queue, "partition": name, "transactionId": transaction_id, "payload": payload}

    async def _push(self, http: httpx2.AsyncClient, items: list[dict[str, Any]]) -> None:
        while True:
            try:
                response = await http.post("/api/v1/push", json={"items": items})
            except httpx2.TransportError:
                response = None
            if response is not None and response.status_code == 201:
                break
            assert response is None or response.status_code >= 500, response.text
            self.sent_again += 1
            await asyncio.sleep(PAUSE)
        for item, result in zip(items, response.json(), strict=True):
            assert result["status"] in ("queued", "duplicate"), result
            assert result["transaction_id"] == item["transactionId"]
            self._ledger.push(item["transactionId"], result["message_id"])
