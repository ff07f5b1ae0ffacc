"""Counts of the log: kept in the background, so that no answer has to count it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from .database import Database
from .errors import Conflict
from .page import Page, Rows
from .queries import query

BUDGET = 200_000
"""Messages that one round counts; more are left to the next."""

EXACT = 1000
"""Numbers up to this are exact; larger ones are as of the last round."""

FEW = 100
"""Rows of an answer for which numbers are made exact; in longer lists all are as of the last round."""

SHARE = 20
"""Counting takes at most one part in so many of the time."""

_CHEAP_SECONDS = 0.05  # a round that took no longer is run for whoever asks


class Freshness(NamedTuple):
    """When the counts were brought up to date, the seconds it took, whether all is counted, and their age."""

    at: datetime | None
    seconds: float
    complete: bool
    age: float


class Counts:
    """Messages of queues, lag of groups."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def run(self, every: float = 0.0) -> bool | None:
        """Bring the counts up to date, unless somebody did within the last `every` seconds.

        Returns whether everything is counted; None when somebody else did it or is at it.
        """
        try:
            async with self._database.snapshot() as connection:
                params = {"budget": BUDGET, "every": every}
                row = await (await connection.execute(query("count_log"), params)).fetchone()
        except Conflict:
            return None
        return None if row is None else row[0]

    async def freshness(self) -> Freshness:
        """How old the counts are."""
        row = await self._database.row("counting")
        assert row is not None
        return Freshness(*row)

    async def refresh(self) -> Freshness:
        """The same, after a round if that is cheap and the last one is not too recent."""
        found = await self.freshness()
        if found.seconds <= _CHEAP_SECONDS and found.age > SHARE * found.seconds:
            await self.run(SHARE * found.seconds)
            found = await self.freshness()
        return found

    async def totals(self) -> dict[str, Any]:
        """Sums over everything, by name."""
        return (await self._database.records("totals"))[0]

    async def scopes(self, of: str, page: Page) -> Rows:
        """A page of the namespaces or tasks (`of`) with the sums of their queues; and how many there are."""
        return await self._database.page("scopes", page, of=of)
