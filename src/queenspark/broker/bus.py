"""Notifications between brokers: queues with new messages, changed names.

Carried by PostgreSQL's NOTIFY, outside the producers' transactions, and batched over a few milliseconds. A
broker handles its own notifications at once. When the listening connection breaks, everything counts as
changed once it is back.
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
    """Sends and receives notifications."""

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
        """Start sending and listening."""
        self._tasks = [asyncio.create_task(self._send()), asyncio.create_task(self._listen())]

    async def stop(self) -> None:
        """Stop sending and listening."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_STOP_SECONDS)

    def wake(self, queue: str) -> None:
        """Notify of new messages in a queue."""
        self._on_wake(queue)
        self._wake.add(queue)
        self._due.set()

    def forget(self, queue: str) -> None:
        """Notify of a changed or deleted queue."""
        self._on_forget(queue)
        self._on_wake(queue)
        self._forget.add(queue)
        self._due.set()

    def modes_changed(self) -> None:
        """Notify of a switched maintenance mode."""
        self.on_modes()
        self._modes = True
        self._due.set()

    def keys_changed(self) -> None:
        """Notify of a revoked API key."""
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
                except Exception as error:  # noqa: BLE001 - the sender must survive any error
                    # Other brokers notice by polling; stale cache entries are checked on use.
                    log.warning("cannot notify other brokers: %s", error)

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
                log.warning("cannot listen for notifications of other brokers, retrying: %s", error)
            await asyncio.sleep(_RETRY_SECONDS)

    def _everything(self) -> None:
        """Treat everything as changed: notifications may have been missed."""
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
