"""What the parts of one client share: the connection, the push buffer, and the consumers."""

from __future__ import annotations

from threading import Lock
from typing import Any

from ..errors import QueenError
from ..identity import new_consumer_id
from ..outgoing import Item, Pushed
from ..wire import PushedItem
from .buffer import AsyncBuffer
from .crew import AsyncCrew, current
from .transport import AsyncTransport


class AsyncSession:
    """One connection's worth of state."""

    def __init__(
        self, transport: AsyncTransport, *, buffer_size: int, linger: float, patience: float
    ) -> None:
        self.transport = transport
        self.call = transport.call
        self.consumer_id = new_consumer_id()
        self.buffer = AsyncBuffer(self.push, buffer_size, linger, patience)
        self._crews: set[AsyncCrew[Any]] = set()
        self._closed = False
        self._lock = Lock()

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
        with self._lock:
            if self._closed:
                raise QueenError("the client is closed")
            self._crews.add(crew)
        try:
            await crew.run()
        finally:
            with self._lock:
                self._crews.discard(crew)
            crew.ended.set()

    def stop(self) -> list[AsyncCrew[Any]]:
        """End all consumers after what they have in hand."""
        with self._lock:
            crews = list(self._crews)
        for crew in crews:
            crew.stop()
        return crews

    async def aclose(self) -> None:
        """Let the consumers finish what they have in hand, send what is buffered, close the connections."""
        with self._lock:
            if current.get() in self._crews:
                raise QueenError("a handler cannot close its client: call stop(), and close afterwards")
            self._closed = True
        for crew in self.stop():
            await crew.ended.wait()
        try:
            await self.buffer.aclose()
        finally:
            await self.transport.aclose()
