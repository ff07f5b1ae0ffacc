"""What the parts of one client share: the connection, the push buffer, and the leases in hand."""

from __future__ import annotations

from typing import Any

from ..outgoing import Item, Pushed
from ..wire import PushedItem
from .buffer import AsyncBuffer
from .crew import AsyncCrew
from .leases import AsyncKeeper
from .transport import AsyncTransport


class AsyncSession:
    """One connection's worth of state."""

    def __init__(
        self, transport: AsyncTransport, *, buffer_size: int, linger: float, patience: float
    ) -> None:
        self.transport = transport
        self.call = transport.call
        self.keeper = AsyncKeeper()
        self.buffer = AsyncBuffer(self.push, buffer_size, linger, patience)
        self._crews: set[AsyncCrew[Any]] = set()

    async def push(self, items: list[Item]) -> list[Pushed]:
        """Store items, all or none; repeated until answered, stored once."""
        if not items:
            return []
        answers = await self.call("POST", "push", body={"items": items}, kind=list[PushedItem])
        return [
            Pushed(each.message_id, each.transaction_id, each.partition_id, each.status == "duplicate")
            for each in answers
        ]

    async def run(self, crew: AsyncCrew[Any]) -> None:
        """Let a crew work; closing the client ends it."""
        self._crews.add(crew)
        try:
            await crew.run()
        finally:
            self._crews.discard(crew)

    def stop(self) -> None:
        """End all consumers after what they have in hand."""
        for crew in list(self._crews):
            crew.stop()

    async def aclose(self) -> None:
        """Send what is buffered, renew no more, close the connections."""
        self.stop()
        try:
            await self.buffer.aclose()
        finally:
            await self.keeper.aclose()
            await self.transport.aclose()
