"""Answers that are kept for a second, so that many dashboards cost as much as one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

KEPT_SECONDS = 1.0
_MOST = 100  # answers kept


class _Glance(NamedTuple):
    until: float
    answer: asyncio.Future[Any]


class Glances:
    """Makes an answer once for all who ask for it within a second."""

    def __init__(self) -> None:
        self._glances: dict[str, _Glance] = {}

    async def get(self, name: str, make: Callable[[], Awaitable[Any]]) -> Any:
        """The answer of that name; those who ask while it is made wait for it."""
        known = self._glances.get(name)
        if known is None or known.until < time.monotonic():
            if len(self._glances) >= _MOST:
                self._glances.clear()
            known = _Glance(time.monotonic() + KEPT_SECONDS, asyncio.ensure_future(make()))
            known.answer.add_done_callback(_note_failure)
            self._glances[name] = known
        try:
            # Whoever goes away leaves the others their answer.
            return await asyncio.shield(known.answer)
        except Exception:
            self._glances.pop(name, None)
            raise


def _note_failure(answer: asyncio.Future[Any]) -> None:
    """Whoever waits gets the error; when all have gone away, nobody needs to hear of it."""
    if not answer.cancelled():
        answer.exception()
