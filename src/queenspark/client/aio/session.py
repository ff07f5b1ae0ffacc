"""State shared by all objects of one client: connection, push buffer, consumers."""

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
    """The shared state of one client."""

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
        """Store items atomically; retried until a broker responds, stored once."""
        if not items:
            return []
        pushed = await self.call("POST", "push", body={"items": items}, kind=list[PushedItem])
        return [
            Pushed(each.message_id, each.transaction_id, each.partition_id, each.status == "duplicate")
            for each in pushed
        ]

    async def run(self, crew: AsyncCrew[Any]) -> None:
        """Run a crew until it ends; closing the client stops it."""
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
        """Stop all consumers after their deliveries in flight."""
        with self._lock:
            crews = list(self._crews)
        for crew in crews:
            crew.stop()
        return crews

    async def aclose(self) -> None:
        """Let consumers finish their deliveries in flight, flush buffered pushes, close the connections."""
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
