"""News between brokers: which queues got messages, which names changed.

Carried by PostgreSQL's NOTIFY, outside the producers' transactions and gathered over a few milliseconds. A
broker acts on its own news at once. When the listening connection breaks, everything is taken for news once
it is back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from uuid import uuid4

import msgspec

from ..store import news as wire
from ..store.database import Database
from ..store.errors import StoreError

log = logging.getLogger("queenspark.broker")

_GATHER_SECONDS = 0.005
_RETRY_SECONDS = 1.0
_STOP_SECONDS = 5.0


class Bus:
    """Sends and receives news."""

    def __init__(
        self, database: Database, wake: Callable[[str | None], None], forget: Callable[[str | None], None]
    ) -> None:
        self._database = database
        self._on_wake = wake
        self._on_forget = forget
        self.on_modes: Callable[[], None] = lambda: None
        self.on_keys: Callable[[], None] = lambda: None
        self._me = uuid4().hex[:8]
        self._wake: set[str] = set()
        self._forget: set[str] = set()
        self._modes = False
        self._keys = False
        self._due = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to send and to listen."""
        self._tasks = [asyncio.create_task(self._send()), asyncio.create_task(self._listen())]

    async def stop(self) -> None:
        """Stop both."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_STOP_SECONDS)

    def wake(self, queue: str) -> None:
        """There is something to read in a queue."""
        self._on_wake(queue)
        self._wake.add(queue)
        self._due.set()

    def forget(self, queue: str) -> None:
        """A queue was changed or deleted."""
        self._on_forget(queue)
        self._on_wake(queue)
        self._forget.add(queue)
        self._due.set()

    def modes_changed(self) -> None:
        """A maintenance mode was switched."""
        self.on_modes()
        self._modes = True
        self._due.set()

    def keys_changed(self) -> None:
        """An API key was revoked."""
        self.on_keys()
        self._keys = True
        self._due.set()

    async def _send(self) -> None:
        while True:
            await self._due.wait()
            await asyncio.sleep(_GATHER_SECONDS)
            self._due.clear()
            wake, forget, modes, keys = self._wake, self._forget, self._modes, self._keys
            self._wake, self._forget, self._modes, self._keys = set(), set(), False, False
            for text in wire.pack(self._me, wake, forget, modes=modes, keys=keys):
                try:
                    await wire.tell(self._database, text)
                except Exception as error:  # noqa: BLE001 - whatever it is, sending must go on
                    # Others find out by their own polling; what was forgotten is checked when it is used.
                    log.warning("could not tell other brokers: %s", error)

    async def _listen(self) -> None:
        decode = msgspec.json.Decoder(wire.News).decode
        while True:
            try:
                async for text in wire.listen(self._database):
                    if not text:
                        self._everything()
                    elif (news := decode(text)).sender != self._me:
                        self._receive(news)
            except (StoreError, msgspec.MsgspecError) as error:
                log.warning("not listening to other brokers: %s", error)
            await asyncio.sleep(_RETRY_SECONDS)

    def _everything(self) -> None:
        """What was said while nobody listened may have been about anything."""
        self._on_forget(None)
        self._on_wake(None)
        self.on_modes()
        self.on_keys()

    def _receive(self, news: wire.News) -> None:
        for queue in news.forget:
            self._on_forget(queue)
        for queue in {*news.wake, *news.forget}:
            self._on_wake(queue)
        if news.modes:
            self.on_modes()
        if news.keys:
            self.on_keys()
