# Made from aio/session.py by `make format`: change that file, not this one.
"""What the parts of one client share: the connection, the push buffer, and the consumers."""

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
    """One connection's worth of state."""

    def __init__(self, transport: Transport, *, buffer_size: int, linger: float, patience: float) -> None:
        self.transport = transport
        self.call = transport.call
        self.consumer_id = new_consumer_id()
        self.buffer = Buffer(self.push, buffer_size, linger, patience)
        self._crews: set[Crew[Any]] = set()
        self._closed = False
        self._lock = Lock()

    def push(self, items: list[Item]) -> list[Pushed]:
        """Store items, all or none; repeated until answered, stored once."""
        if not items:
            return []
        answers = self.call("POST", "push", body={"items": items}, kind=list[PushedItem])
        return [
            Pushed(each.message_id, each.transaction_id, each.partition_id, each.status == "duplicate")
            for each in answers
        ]

    def run(self, crew: Crew[Any]) -> None:
        """Let a crew work; closing the client ends it."""
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
        """End all consumers after what they have in hand."""
        with self._lock:
            crews = list(self._crews)
        for crew in crews:
            crew.stop()
        return crews

    def close(self) -> None:
        """Let the consumers finish what they have in hand, send what is buffered, close the connections."""
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
