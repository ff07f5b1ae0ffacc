"""Running processes, and the activity of the brokers in the last hour, in steps of a few seconds."""

from __future__ import annotations

from typing import Any

from .database import Database
from .definitions import STREAMS_QUERY

STEP_SECONDS = 5.0
"""The length of a step."""

SILENCE_SECONDS = 20.0
"""A process silent for this long counts as gone."""

COUNTED = ("pushed", "popped", "acked", "failed", "delivered")
"""The counters of each broker."""


class Samples:
    """One row per broker and step, so that every broker can serve them all."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def note(self, broker: str, counted: dict[str, int]) -> None:
        """Record the activity of a broker since its last sample, and the state of the whole system."""
        params = {"step": STEP_SECONDS, "broker": broker, "query": STREAMS_QUERY}
        await self._database.execute("note_sample", {**params, **counted})

    async def note_process(self, name: str, version: str, address: str) -> None:
        """Report a running broker."""
        params = {"name": name, "kind": "broker", "version": version, "address": address}
        await self._database.execute("note_process", params)

    async def forget(self) -> None:
        """Delete samples older than an hour."""
        await self._database.execute("forget_samples")

    async def series(self, seconds: float) -> list[dict[str, Any]]:
        """Return the steps of the last seconds, summed over all brokers, oldest first."""
        params = {"seconds": seconds + STEP_SECONDS, "step": STEP_SECONDS}
        return await self._database.records("series", params)

    async def processes(self) -> list[dict[str, Any]]:
        """Return the running brokers and pipelines: name, kind, version, address, started_at, seen_at."""
        return await self._database.records("list_processes", {"seconds": SILENCE_SECONDS})
