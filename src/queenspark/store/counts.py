"""Counts of the log, maintained in the background, so that no request has to count it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from .database import Database
from .errors import Conflict
from .page import Page, Rows
from .queries import query

BUDGET = 200_000
"""Messages counted per round; the rest is left to the next."""

EXACT = 1000
"""Counts up to this are exact; larger ones are as of the last round."""

FEW = 100
"""Lists up to this many rows get exact counts; in longer ones all are as of the last round."""

SHARE = 20
"""Counting uses at most one part in this many of wall time."""

_CHEAP_SECONDS = 0.05  # a round this short is run on request


class Freshness(NamedTuple):
    """Time of the last count, its duration in seconds, whether it is complete, and its age."""

    at: datetime | None
    seconds: float
    complete: bool
    age: float


class Counts:
    """Message counts of queues, lag of groups."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def run(self, every: float = 0.0) -> bool | None:
        """Update the counts, unless that was done within the last `every` seconds.

        Returns whether everything is counted; None if another broker did it or is doing it.
        """
        try:
            async with self._database.snapshot() as connection:
                params = {"budget": BUDGET, "every": every}
                row = await (await connection.execute(query("count_log"), params)).fetchone()
        except Conflict:
            return None
        return None if row is None else row[0]

    async def freshness(self) -> Freshness:
        """Return the age of the counts."""
        row = await self._database.row("counting")
        assert row is not None
        return Freshness(*row)

    async def refresh(self) -> Freshness:
        """Return the same, after a round if that is cheap and the last one is not too recent."""
        found = await self.freshness()
        if found.seconds <= _CHEAP_SECONDS and found.age > SHARE * found.seconds:
            await self.run(SHARE * found.seconds)
            found = await self.freshness()
        return found

    async def totals(self) -> dict[str, Any]:
        """Return totals over the whole system, by name."""
        return (await self._database.records("totals"))[0]

    async def scopes(self, of: str, page: Page) -> Rows:
        """Return a page of the namespaces or tasks (`of`) with the sums of their queues, and the total."""
        return await self._database.page("scopes", page, of=of)
