"""Dead letters: list, return to their groups, delete."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from .database import Database
from .encryption import Cipher

_MOST_COUNTED = 10_000


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """A filter on dead letters; None matches all."""

    queue: str | None = None
    group: str | None = None
    partition: str | None = None
    partition_id: int | None = None
    transaction_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    #: Only queues that match one of these LIKE patterns; not supported by `put_back`.
    visible: list[str] | None = None

    def params(self) -> dict[str, Any]:
        """The filter as statement parameters."""
        params = msgspec.structs.asdict(self)
        params["from"] = params.pop("since")
        params["to"] = params.pop("until")
        return params


class DeadLetters:
    """The dead letters of all groups."""

    def __init__(self, database: Database, cipher: Cipher) -> None:
        self._database = database
        self._cipher = cipher

    async def find(
        self, chosen: Filter, limit: int = 100, offset: int = 0
    ) -> tuple[list[dict[str, Any]], int]:
        """Return a page of dead letters, newest first, and their number, counted up to 10,000."""
        params = {**chosen.params(), "limit": limit, "offset": offset, "most": _MOST_COUNTED}
        records = await self._database.records("list_dead_letters", params)
        total = len(records)
        if offset or len(records) == limit:
            row = await self._database.row("count_dead_letters", params)
            total = int(row[0]) if row else 0
        return [self._readable(record) for record in records], total

    def _readable(self, record: dict[str, Any]) -> dict[str, Any]:
        if record["encrypted"]:
            record["payload"] = self._cipher.decrypt(record["payload"], record["transaction_id"])
        return record

    async def put_back(self, chosen: Filter) -> list[int]:
        """Return them to their groups for redelivery; return the partition of each."""
        return [row[0] for row in await self._database.rows("return_dead_letters", chosen.params())]

    async def delete(self, chosen: Filter) -> int:
        """Delete them permanently."""
        return len(await self._database.rows("delete_dead_letters", chosen.params()))
