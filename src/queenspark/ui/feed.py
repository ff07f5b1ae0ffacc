"""Feeds: API responses that are polled once, however many pages show them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Any

from ..client import QueenError, Unavailable, Unreachable

EVERY_SECONDS = 1.0
_UNWATCHED_SECONDS = 3.0  # polling stops this long after the last page asked for the feed
_FORGOTTEN_SECONDS = 60.0
_LONGEST_REST_SECONDS = 10.0

Fetch = Callable[[], Awaitable[Any]]
OnError = Callable[[QueenError], None]

log = logging.getLogger("queenspark.ui")


class Failed(Exception):
    """An error of the dashboard itself, as its pages show it."""

    def __init__(self, what: str, error: Exception) -> None:
        super().__init__(
            f"{what} ({type(error).__name__}: {error}). Reload the page; if that does not help, see the log"
            " of the dashboard."
        )


class Feed:
    """The latest response to one request, polled while a page watches it."""

    def __init__(self, fetch: Fetch, every: float, on_error: OnError = lambda _: None) -> None:
        self._on_error = on_error
        self._fetch = fetch
        #: Seconds between two requests.
        self.every = every
        self._watched_at = time.monotonic()
        self._task: asyncio.Task[None] | None = None
        self._first = asyncio.Event()
        self.value: Any = None
        self.error: QueenError | Failed | None = None
        #: When the broker stopped responding; None while it responds.
        self.gone_since: float | None = None
        #: Incremented when the value or the error changes.
        self.version = 0

    @property
    def is_forgotten(self) -> bool:
        """Whether no page has watched it for a minute."""
        return time.monotonic() - self._watched_at > _FORGOTTEN_SECONDS

    def watch(self) -> None:
        """Keep polling for a few more seconds."""
        self._watched_at = time.monotonic()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._poll())

    async def first(self, within: float = 1.0) -> Any:
        """Return the value, waiting for the first response up to `within` seconds; None without one."""
        self.watch()
        try:
            await asyncio.wait_for(self._first.wait(), within)
        except TimeoutError:
            return None
        return self.value

    async def refresh(self) -> None:
        """Fetch now, for example after a change."""
        try:
            value = await self._fetch()
        except QueenError as error:
            self._on_error(error)
            is_gone = isinstance(error, Unreachable | Unavailable)
            self.gone_since = (self.gone_since or time.time()) if is_gone else None
            self._fail(error)
        except Exception as error:
            self.gone_since = None
            if self._fail(Failed("The dashboard cannot read a response of the broker", error)):
                log.exception("cannot read a response of the broker")
        else:
            self.gone_since = None
            if value != self.value or self.error is not None:
                self.value, self.error = value, None
                self.version += 1
        self._first.set()

    def _fail(self, error: QueenError | Failed) -> bool:
        """Keep an error; return whether it is a new one."""
        if str(error) == str(self.error):
            return False
        self.error = error
        self.version += 1
        return True

    def close(self) -> None:
        """Stop polling."""
        if self._task is not None:
            self._task.cancel()

    async def _poll(self) -> None:
        while time.monotonic() - self._watched_at < _UNWATCHED_SECONDS:
            begun = time.monotonic()
            await self.refresh()
            took = time.monotonic() - begun
            # Expensive requests are sent less often; a broker that was away is asked again soon.
            rest = 0.0 if self.gone_since is not None else min(2 * took, _LONGEST_REST_SECONDS)
            await asyncio.sleep(max(self.every - took, rest, 0.1))


class Feeds:
    """The feeds of one session by key."""

    def __init__(self, on_error: OnError = lambda _: None) -> None:
        self._on_error = on_error
        self._feeds: dict[Hashable, Feed] = {}

    def get(self, key: Hashable, fetch: Fetch, every: float = EVERY_SECONDS) -> Feed:
        """Return the feed with this key, made with `fetch` if there is none.

        It is polled as often as the page with the shortest interval wants.
        """
        feed = self._feeds.get(key)
        if feed is None:
            for name in [name for name, each in self._feeds.items() if each.is_forgotten]:
                self._feeds.pop(name).close()
            feed = self._feeds[key] = Feed(fetch, every, self._on_error)
        feed.every = min(feed.every, every)
        return feed

    def close(self) -> None:
        """Stop all feeds."""
        for feed in self._feeds.values():
            feed.close()
        self._feeds.clear()
