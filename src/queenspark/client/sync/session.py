# Made from aio/session.py by `make format`: change that file, not this one.
"""What the parts of one client share: the connection, the push buffer, and the leases in hand."""

from __future__ import annotations

from typing import Any

from ..outgoing import Item, Pushed
from ..wire import PushedItem
from .buffer import Buffer
from .crew import Crew
from .leases import Keeper
from .transport import Transport


class Session:
    """One connection's worth of state."""

    def __init__(self, transport: Transport, *, buffer_size: int, linger: float, patience: float) -> None:
        self.transport = transport
        self.call = transport.call
        self.keeper = Keeper()
        self.buffer = Buffer(self.push, buffer_size, linger, patience)
        self._crews: set[Crew[Any]] = set()

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
        self._crews.add(crew)
        try:
            crew.run()
        finally:
            self._crews.discard(crew)

    def stop(self) -> None:
        """End all consumers after what they have in hand."""
        for crew in list(self._crews):
            crew.stop()

    def close(self) -> None:
        """Send what is buffered, renew no more, close the connections."""
        self.stop()
        try:
            self.buffer.close()
        finally:
            self.keeper.close()
            self.transport.close()
