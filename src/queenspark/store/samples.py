"""What runs, and what the brokers did in the last hour, in steps of a few seconds."""

from __future__ import annotations

from typing import Any

from .database import Database
from .definitions import STREAMS_QUERY

STEP_SECONDS = 5.0
"""The length of a step."""

SILENCE_SECONDS = 20.0
"""A process that was not heard of for this long is taken for gone."""

COUNTED = ("pushed", "popped", "acked", "failed", "delivered")
"""What each broker counts for itself."""


class Samples:
    """A row of each broker for each step, so that every broker can answer for all of them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def note(self, broker: str, counted: dict[str, int]) -> None:
        """Note what a broker did since its last note, and the state of the whole system."""
        params = {"step": STEP_SECONDS, "broker": broker, "query": STREAMS_QUERY}
        await self._database.execute("note_sample", {**params, **counted})

    async def note_process(self, name: str, version: str, address: str) -> None:
        """Say that a broker runs."""
        params = {"name": name, "kind": "broker", "version": version, "address": address}
        await self._database.execute("note_process", params)

    async def forget(self) -> None:
        """Forget everything that is older than an hour."""
        await self._database.execute("forget_samples")

    async def series(self, seconds: float) -> list[dict[str, Any]]:
        """The steps of that many seconds up to now, all brokers together, the oldest first."""
        params = {"seconds": seconds + STEP_SECONDS, "step": STEP_SECONDS}
        return await self._database.records("series", params)

    async def processes(self) -> list[dict[str, Any]]:
        """The brokers and pipelines that run: name, kind, version, address, started_at, seen_at."""
        return await self._database.records("list_processes", {"seconds": SILENCE_SECONDS})
