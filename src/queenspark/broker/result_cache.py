"""A one-second cache of results, so that many dashboards cost as much as one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

KEPT_SECONDS = 1.0
_MOST = 100  # cached results


class _Entry(NamedTuple):
    until: float
    result: asyncio.Future[Any]


class ResultCache:
    """Computes each result once per second, for all callers."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}

    async def get(self, name: str, make: Callable[[], Awaitable[Any]]) -> Any:
        """Return the result of this name; concurrent callers share one computation."""
        known = self._entries.get(name)
        if known is None or known.until < time.monotonic():
            if len(self._entries) >= _MOST:
                self._entries.clear()
            known = _Entry(time.monotonic() + KEPT_SECONDS, asyncio.ensure_future(make()))
            known.result.add_done_callback(_note_failure)
            self._entries[name] = known
        try:
            # A cancelled caller must not cancel the shared computation.
            return await asyncio.shield(known.result)
        except Exception:
            self._entries.pop(name, None)
            raise


def _note_failure(result: asyncio.Future[Any]) -> None:
    """Mark the exception as retrieved: every waiter gets it, and there may be none left."""
    if not result.cancelled():
        result.exception()
