"""Safe time: the time before which every message is visible and final."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from .database import Database


class Clock:
    """Samples the database's clock and transaction ids, to derive safe time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._heads: dict[str, tuple[int, int]] = {}

    async def sample(self, every: float = 0.0) -> None:
        """Take a sample, unless one was taken within the last `every` seconds."""
        await self._database.execute("look", {"every": every})

    async def safe_time(self, txid: int | None = None) -> datetime | None:
        """Return the safe time, now or for a reader that stopped at this transaction id."""
        row = await self._database.row("safe_time", {"txid": txid})
        return None if row is None else row[0]

    async def holder(self) -> dict[str, Any] | None:
        """Return the oldest transaction, which holds safe time back: pid, application, state, seconds."""
        records = await self._database.records("horizon_holder")
        return records[0] if records else None

    async def changed_queues(self, names: set[str]) -> list[str]:
        """Return which of these queues have grown since the last call that named them."""
        if not names:
            return []
        rows = await self._database.rows("heads", {"names": list(names)})
        heads = {name: (txid, id_) for name, txid, id_ in rows}
        changed = [name for name, head in heads.items() if self._heads.get(name) != head]
        self._heads = heads
        return changed
