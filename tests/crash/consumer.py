"""A consumer that pops and acks through all failures of the broker."""

import asyncio
from typing import Any

import httpx2

from tests.crash.ledger import Ledger

BATCH = 200
WAIT_MS = 500
PAUSE = 0.05
PATIENCE = httpx2.Timeout(15.0)


class Consumer:
    """Consumes for a group and records its deliveries."""

    def __init__(self, url: str, queue: str, group: str, ledger: Ledger) -> None:
        self._url = url
        self._queue = queue
        self._group = group
        self._ledger = ledger

    async def run(self, stop: asyncio.Event) -> None:
        """Consume until told to stop."""
        async with httpx2.AsyncClient(base_url=self._url, timeout=PATIENCE) as http:
            while not stop.is_set():
                try:
                    messages = await self._pop(http)
                except httpx2.TransportError:
                    await asyncio.sleep(PAUSE)
                    continue
                self._ledger.deliver(messages)
                if messages:
                    await self._ack(http, messages)

    async def _pop(self, http: httpx2.AsyncClient) -> list[dict[str, Any]]:
        query: dict[str, str | int] = {
            "batch": BATCH, "wait": "true", "timeout": WAIT_MS, "consumerGroup": self._group,
        }  # fmt: skip
        response = await http.get(f"/api/v1/pop/queue/{self._queue}", params=query)
        if response.status_code >= 500:
            await asyncio.sleep(PAUSE)
            return []
        if response.status_code == 204:
            return []
        assert response.status_code == 200, response.text
        messages: list[dict[str, Any]] = response.json()["messages"]
        return messages

    async def _ack(self, http: httpx2.AsyncClient, messages: list[dict[str, Any]]) -> None:
        acks = [
            {name: message[name] for name in ("transactionId", "partitionId", "leaseId")}
            for message in messages
        ]
        body = {
            "consumerGroup": self._group,
            "acknowledgments": [{**ack, "status": "completed"} for ack in acks],
        }
        try:
            response = await http.post("/api/v1/ack/batch", json=body)
        except httpx2.TransportError:
            self._ledger.lose_response(messages)
            return
        if response.status_code == 200:
            self._ledger.ack(response.json())
        else:
            assert response.status_code >= 500, response.text
            self._ledger.lose_response(messages)
