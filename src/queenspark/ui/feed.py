"""Feeds: answers of the API that are asked for once, however many people look at them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Any

from ..client import QueenError, Unavailable, Unreachable

EVERY_SECONDS = 1.0
_UNWATCHED_SECONDS = 3.0  # after which nobody is taken to look
_FORGOTTEN_SECONDS = 60.0

Fetch = Callable[[], Awaitable[Any]]
OnError = Callable[[QueenError], None]


class Feed:
    """The newest answer to one question, renewed while somebody looks."""

    def __init__(self, fetch: Fetch, every: float, on_error: OnError = lambda _: None) -> None:
        self._on_error = on_error
        self._fetch = fetch
        self._every = every
        self._looked_at = time.monotonic()
        self._task: asyncio.Task[None] | None = None
        self._first = asyncio.Event()
        self.value: Any = None
        self.error: QueenError | None = None
        #: Since when no broker answers; None while one does.
        self.gone_since: float | None = None
        #: Rises with every answer that differs from the one before.
        self.version = 0

    @property
    def is_forgotten(self) -> bool:
        """Whether nobody has looked for long."""
        return time.monotonic() - self._looked_at > _FORGOTTEN_SECONDS

    def look(self) -> None:
        """Say that somebody looks; it is renewed for some seconds from now on."""
        self._looked_at = time.monotonic()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._renew())

    async def first(self, within: float = 1.0) -> Any:
        """The answer, when there is one within some seconds."""
        self.look()
        try:
            await asyncio.wait_for(self._first.wait(), within)
        except TimeoutError:
            return None
        return self.value

    async def again(self) -> None:
        """Ask now, because something was changed."""
        await self._ask()

    def close(self) -> None:
        """Stop."""
        if self._task is not None:
            self._task.cancel()

    async def _renew(self) -> None:
        while time.monotonic() - self._looked_at < _UNWATCHED_SECONDS:
            begun = time.monotonic()
            await self._ask()
            took = time.monotonic() - begun
            # What takes long is asked for less often.
            await asyncio.sleep(max(0.0, self._every - took, 2 * took))

    async def _ask(self) -> None:
        try:
            value = await self._fetch()
        except QueenError as error:
            self._on_error(error)
            if isinstance(error, Unreachable | Unavailable):
                self.gone_since = self.gone_since or time.time()
            else:
                self.gone_since = None
            if str(error) != str(self.error):
                self.error = error
                self.version += 1
        else:
            self.gone_since = None
            if value != self.value or self.error is not None:
                self.value, self.error = value, None
                self.version += 1
        self._first.set()


class Feeds:
    """The feeds of one session, by the question that they answer."""

    def __init__(self, on_error: OnError = lambda _: None) -> None:
        self._on_error = on_error
        self._feeds: dict[Hashable, Feed] = {}

    def get(self, question: Hashable, fetch: Fetch, every: float = EVERY_SECONDS) -> Feed:
        """The feed of a question; who asks the same gets the same one."""
        feed = self._feeds.get(question)
        if feed is None:
            for name in [name for name, each in self._feeds.items() if each.is_forgotten]:
                self._feeds.pop(name).close()
            feed = self._feeds[question] = Feed(fetch, every, self._on_error)
        return feed

    def close(self) -> None:
        """Stop all."""
        for feed in self._feeds.values():
            feed.close()
        self._feeds.clear()
