"""Where the dashboard's clients are made: the one place that knows which broker, and on whose behalf."""

from __future__ import annotations

from ..client import AsyncQueen
from .feed import Feeds

_TIMEOUT_SECONDS = 10.0


class Session:
    """A client of one broker, and the feeds that its viewers share."""

    def __init__(self, url: str) -> None:
        self.url = url
        # A page that waits for a broker is worse than one that says that it does not answer.
        self.queen = AsyncQueen(url, timeout=_TIMEOUT_SECONDS, retries=0)
        self.feeds = Feeds()


_sessions: dict[str, Session] = {}
_url = "http://127.0.0.1:6632"


def configure(url: str) -> None:
    """Choose the broker."""
    global _url  # noqa: PLW0603 - one process shows one system
    _url = url


def session() -> Session:
    """The session of whoever looks at the page that is being made."""
    if _url not in _sessions:
        _sessions[_url] = Session(_url)
    return _sessions[_url]


async def close() -> None:
    """Close all clients."""
    for each in _sessions.values():
        each.feeds.close()
        await each.queen.aclose()
    _sessions.clear()
