"""Messages per second of queues and groups over the last minute, as measured by the brokers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .database import Database

_AT_ONCE = 200
"""Rows per transaction."""


class Rate(NamedTuple):
    """Messages per second of a group on a queue; without a group, the pushes to the queue."""

    queue: str
    group: str | None
    pushed: float = 0.0
    popped: float = 0.0
    acked: float = 0.0


class Rates:
    """One row per broker and active queue or group, so that every broker can serve them all."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def note(self, broker: str, rates: Sequence[Rate]) -> None:
        """Record changed rates of a broker, and forget those that are no longer reported."""
        # A write transaction holds back the horizon, so each one is short.
        for first in range(0, len(rates), _AT_ONCE):
            rows = rates[first : first + _AT_ONCE]
            columns = zip(Rate._fields, map(list, zip(*rows, strict=True)), strict=True)
            await self._database.execute("note_queue_rates", {"broker": broker, **dict(columns)})
        await self._database.execute("forget_queue_rates")

    async def of_queues(self, ids: list[int]) -> dict[int, dict[str, Any]]:
        """Return the rates of some queues by id: pushed, popped, acked."""
        rows = await self._database.records("queue_rates", {"ids": ids})
        return {row.pop("id"): row for row in rows}

    async def of_groups(self, groups: Sequence[dict[str, Any]]) -> dict[int, dict[str, Any]]:
        """Return the rates of some groups, as `Groups.page` returns them, by id: popped, acked."""
        ids, queue_ids = [group["id"] for group in groups], [group["queue_id"] for group in groups]
        rows = await self._database.records("group_rates", {"ids": ids, "queue_ids": queue_ids})
        return {row.pop("id"): row for row in rows}
