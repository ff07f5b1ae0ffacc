"""A record of acknowledged pushes and deliveries, for comparison."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from typing import Any


class Ledger:
    """Pushes, deliveries and acks as seen by the clients; records violations."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.pushed: dict[str, str] = {}
        self.delivered: set[str] = set()
        self.acked: set[str] = set()
        self.unsure: set[str] = set()
        self.came_again: list[str] = []
        self.changed_id: list[str] = []
        self._awaited: list[tuple[int, asyncio.Event]] = []

    def push(self, transaction_id: str, message_id: str) -> None:
        """Record an acknowledged push: the message is in the log under that id."""
        self.pushed[transaction_id] = message_id
        for count, event in self._awaited:
            if len(self.pushed) >= count:
                event.set()

    async def until_pushed(self, count: int) -> None:
        """Wait until that many pushes are acknowledged."""
        event = asyncio.Event()
        self._awaited.append((count, event))
        await event.wait()

    def deliver(self, messages: Iterable[dict[str, Any]]) -> None:
        """Messages were delivered; none of them may have been acked before."""
        for message in messages:
            name = message["transactionId"]
            self.delivered.add(name)
            if name in self.acked:
                self.came_again.append(name)
            if self.pushed.get(name, message["id"]) != message["id"]:
                self.changed_id.append(name)

    def ack(self, results: Iterable[dict[str, Any]]) -> None:
        """Record accepted acks."""
        self.acked.update(result["transactionId"] for result in results if result["success"])

    def lose_response(self, messages: Iterable[dict[str, Any]]) -> None:
        """Record acks without a response: they may or may not count."""
        self.unsure.update(message["transactionId"] for message in messages)

    @property
    def finished(self) -> bool:
        """Whether everything was pushed, and acked or possibly acked."""
        return len(self.pushed) == self.total and len(self.acked | self.unsure) == self.total


def by_partition(messages: Iterable[dict[str, Any]]) -> dict[str, list[int]]:
    """The numbers that the messages carry, per partition, in the order of delivery."""
    numbers: dict[str, list[int]] = defaultdict(list)
    for message in messages:
        numbers[message["partition"]].append(message["data"]["number"])
    return dict(numbers)
