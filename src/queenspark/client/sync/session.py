# Made from aio/session.py by `make format`: change that file, not this one.
"""State shared by all objects of one client: connection, push buffer, consumers."""

from __future__ import annotations

from threading import Lock
from typing import Any

from ..errors import QueenError
from ..identity import new_consumer_id
from ..outgoing import Item, Pushed
from ..wire import PushedItem
from .buffer import Buffer
from .crew import Crew, current
from .transport import Transport


class Session:
    """The shared state of one client."""

    def __init__(self, transport: Transport, *, buffer_size: int, linger: float, patience: float) -> None:
        self.transport = transport
        self.call = transport.call
        self.consumer_id = new_consumer_id()
        self.buffer = Buffer(self.push, buffer_size, linger, patience)
        self._crews: set[Crew[Any]] = set()
        self._closed = False
        self._lock = Lock()

    def push(self, items: list[Item]) -> list[Pushed]:
        """Store items atomically; retried until a broker responds, stored once."""
        if not items:
            return []
        pushed = self.call("POST", "push", body={"items": items}, kind=list[PushedItem])
        return [
            Pushed(each.message_id, each.transaction_id, each.partition_id, each.status == "duplicate")
            for each in pushed
        ]

    def run(self, crew: Crew[Any]) -> None:
        """Run a crew until it ends; closing the client stops it."""
        with self._lock:
            if self._closed:
                raise QueenError("the client is closed")
            self._crews.add(crew)
        try:
            crew.run()
        finally:
            with self._lock:
                self._crews.discard(crew)
            crew.ended.set()

    def stop(self) -> list[Crew[Any]]:
        """Stop all consumers after their deliveries in flight."""
        with self._lock:
            crews = list(self._crews)
        for crew in crews:
            crew.stop()
        return crews

    def close(self) -> None:
        """Let consumers finish their deliveries in flight, flush buffered pushes, close the connections."""
        with self._lock:
            if current.get() in self._crews:
                raise QueenError("a handler cannot close its client: call stop(), and close afterwards")
            self._closed = True
        for crew in self.stop():
            crew.ended.wait()
        try:
            self.buffer.close()
        finally:
            self.transport.close()
