"""Looking at single messages of the log."""

from __future__ import annotations

from typing import Any

from .database import Database
from .encryption import Cipher

_FILTERS = (
    "queue_id",
    "partition",
    "partition_id",
    "transaction_id",
    "namespace",
    "task",
    "from",
    "to",
    "status",
    "visible",
)


class Messages:
    """The log as something to browse."""

    def __init__(self, database: Database, cipher: Cipher) -> None:
        self._database = database
        self._cipher = cipher

    async def browse(self, limit: int = 100, offset: int = 0, **chosen: Any) -> list[dict[str, Any]]:
        """Messages, the newest first, with their status."""
        params = {name: chosen.get(name) for name in _FILTERS}
        records = await self._database.records(
            "browse_messages", {**params, "limit": limit, "offset": offset}
        )
        for record in records:
            if record["encrypted"]:
                record["payload"] = self._cipher.decrypt(record["payload"], record["transaction_id"])
        return records

    async def get(self, partition_id: int, transaction_id: str) -> dict[str, Any] | None:
        """One message."""
        found = await self.browse(1, partition_id=partition_id, transaction_id=transaction_id)
        return found[0] if found else None

    async def delete(self, partition_id: int, transaction_id: str) -> bool:
        """Delete one message from the log; groups that have not read it will not."""
        params = {"partition_id": partition_id, "transaction_id": transaction_id}
        return await self._database.row("delete_message", params) is not None
