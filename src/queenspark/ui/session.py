"""Sessions: the API clients of logged-in users. Only this module knows the broker and the credentials."""

from __future__ import annotations

import asyncio
import secrets
import time
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from nicegui import ui

from ..client import AsyncQueen, NotAllowed, QueenError
from ..loopback import is_loopback_url
from ..settings import without_userinfo
from .feed import Feeds

_TIMEOUT_SECONDS = 10.0
_CHECK_SECONDS = 5.0
_KNOWN_SECONDS = 2.0  # a page is sent without knowing whether the broker has access control after this long
_ID_BYTES = 32
COOKIES = ("queenspark_session", "__Host-queenspark_session")
"""The session cookie without and with TLS; browsers bind the second one to this host and to HTTPS."""


class Session:
    """A client of one broker with the rights of one user, and the feeds that this user's pages share.

    The session without a credential is shared by all browsers; a broker with access control refuses it.
    """

    def __init__(self, url: str, ca: Path | None = None, credential: str | None = None) -> None:
        #: The broker, for messages.
        self.url = without_userinfo(url)
        # Without retries: a page that reports a broker that is down is better than one that waits for it.
        self.queen = AsyncQueen(
            url, timeout=_TIMEOUT_SECONDS, retries=0, token=credential, ca=ca, headers=_forwarded
        )
        self.feeds = Feeds(self._failed)
        #: The user, as the API describes them; None without a credential.
        self.me: dict[str, Any] | None = None
        self.used_at = time.monotonic()
        #: Why it ended, a key of `login.REASONS`; None while it lasts.
        self.ended: str | None = None

    def can(self, right: str) -> bool:
        """Whether the user has a right on at least one name."""
        return self.me is None or right in self.me["rights"]

    def lacks(self, right: str) -> str:
        """Explain why an action is not available to the user."""
        name = "nobody" if self.me is None else self.me["name"]
        return f"{name} lacks the right {right}: ask an administrator for a role or scope that includes it"

    def touch(self) -> None:
        """Record that the session is in use, and keep checking that the credential is valid."""
        self.used_at = time.monotonic()
        if self.me is not None and self.ended is None:
            self.feeds.get("me", lambda: self.queen.admin.request("GET", "me"), _CHECK_SECONDS).watch()

    async def end(self, reason: str) -> None:
        """End the session; pages that are still open can do nothing more."""
        self.ended = self.ended or reason
        self.feeds.close()
        await self.queen.aclose()

    def _failed(self, error: QueenError) -> None:
        if isinstance(error, NotAllowed) and error.status == 401 and self.ended is None:
            # Immediately: each further request would count as a failed login of this process.
            self.ended = "refused" if self.me is not None else "closed"
            _ending.add(task := asyncio.get_running_loop().create_task(sessions.refused(self)))
            task.add_done_callback(_ending.discard)


_ending: set[asyncio.Task[None]] = set()


def _forwarded() -> dict[str, str]:
    """Return the address of the browser that a request is for, which the broker's audit log records."""
    try:
        request = ui.context.client.request
    except RuntimeError:  # no page: a feed, which only reads, or a login
        return {}
    if request.client is None:
        return {}
    before = request.headers.get("x-forwarded-for")
    return {"X-Forwarded-For": f"{before}, {request.client.host}" if before else request.client.host}


class Configuration(NamedTuple):
    """The broker, how long an unused session lasts, and the names of the dashboard."""

    url: str = "http://127.0.0.1:6632"
    ca: Path | None = None
    idle_seconds: float = 3600.0
    #: Whether a broker without access control may be shown.
    may_be_open: bool = True
    #: Whether the dashboard listens on loopback only.
    is_local: bool = True
    #: The URL of the dashboard, which may be that of a proxy.
    ui_url: str = "http://127.0.0.1:6633"

    def accepts_host(self, host: str) -> bool:
        """Whether a request with this `Host` is meant for this dashboard.

        On loopback any other name is DNS rebinding: a page of another site that pretends to be ours.
        """
        return (
            not self.is_local
            or not host
            or is_loopback_url(f"//{host}")
            or host.lower() == urlsplit(self.ui_url).netloc.lower()
        )


class Sessions:
    """The sessions of all browsers by the random id in their cookie. Credentials are kept only here."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self._sessions: dict[str, Session] = {}
        self._everybody: Session | None = None
        #: Whether the broker requires a credential; None until it has responded.
        self._is_closed: bool | None = None

    @property
    def everybody(self) -> Session:
        """The session of browsers that have not logged in."""
        if self._everybody is None or self._everybody.ended is not None:
            self._everybody = Session(self.configuration.url, self.configuration.ca)
        return self._everybody

    def find(self, cookies: dict[str, str]) -> Session | None:
        """Return the session of a browser, or None if it has none that lasts."""
        found = self._sessions.get(id_of(cookies))
        return None if found is None or found.ended is not None else found

    async def is_closed(self, *, ask: bool = False) -> bool | None:
        """Whether the broker requires a credential; None if that is unknown because it does not respond."""
        if self._is_closed is None or ask:
            try:
                async with asyncio.timeout(_KNOWN_SECONDS):
                    response = await self.everybody.queen.admin.request("GET", "me")
                self._is_closed = bool(response["accessControl"])
            except NotAllowed:
                self._is_closed = True
            except (QueenError, TimeoutError):
                return self._is_closed
        return self._is_closed

    async def log_in(self, credential: str) -> str:
        """Start a session for a credential and return its id. Raises QueenError."""
        made = Session(self.configuration.url, self.configuration.ca, credential)
        try:
            made.me = await made.queen.admin.request("GET", "me")
        except BaseException:
            await made.end("refused")
            raise
        await self.sweep()
        id_ = secrets.token_urlsafe(_ID_BYTES)
        self._sessions[id_] = made
        return id_

    async def log_out(self, cookies: dict[str, str]) -> None:
        """End the session of a browser."""
        found = self._sessions.pop(id_of(cookies), None)
        if found is not None:
            await found.end("out")

    async def refused(self, session: Session) -> None:
        """End a session whose credential the broker rejects, or that has none where one is required."""
        if session is self._everybody:
            self._is_closed = True
        await session.end("refused")
        self._drop_ended()

    async def sweep(self) -> None:
        """End unused sessions."""
        latest = time.monotonic() - self.configuration.idle_seconds
        for each in list(self._sessions.values()):
            if each.used_at < latest:
                await each.end("idle")
        self._drop_ended()

    def _drop_ended(self) -> None:
        self._sessions = {id_: each for id_, each in self._sessions.items() if each.ended is None}

    async def close(self) -> None:
        """Close all clients."""
        for each in (*self._sessions.values(), *filter(None, [self._everybody])):
            await each.end("stopped")
        self._sessions.clear()


def id_of(cookies: dict[str, str]) -> str:
    """Return the id of a browser's session, empty if it has none."""
    return next((cookies[name] for name in reversed(COOKIES) if name in cookies), "")


sessions = Sessions(Configuration())


def configure(configuration: Configuration) -> None:
    """Set the broker of this process."""
    sessions.configuration = configuration


def session() -> Session:
    """Return the session of the browser that the current page is for."""
    return sessions.find(dict(ui.context.client.request.cookies)) or sessions.everybody


async def close() -> None:
    """Close all clients."""
    await sessions.close()
