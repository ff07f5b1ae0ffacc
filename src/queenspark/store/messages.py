"""Browsing of messages in the log."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from .database import Database
from .encryption import Cipher
from .position import Position

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
    """The log, for browsing."""

    def __init__(self, database: Database, cipher: Cipher) -> None:
        self._database = database
        self._cipher = cipher

    async def browse(self, limit: int = 100, offset: int = 0, **chosen: Any) -> list[dict[str, Any]]:
        """Return messages with their status, newest first."""
        params = {name: chosen.get(name) for name in _FILTERS}
        records = await self._database.records(
            "browse_messages", {**params, "limit": limit, "offset": offset}
        )
        return self._decrypted(records)

    async def after(
        self, queue_id: int, position: Position, limit: int, most_bytes: int
    ) -> list[dict[str, Any]]:
        """Return the next final messages of a queue in log order.

        At most `limit`, and no more once `most_bytes` are reached.
        """
        params = {"queue_id": queue_id, **position._asdict(), "limit": limit, "bytes": most_bytes}
        return self._decrypted(await self._database.records("log_page", params))

    async def end(self, queue_id: int) -> Position | None:
        """Return the position of the last final message of a queue."""
        row = await self._database.row("log_last_final", {"queue_id": queue_id})
        return None if row is None else Position(*row)

    async def position_at(self, queue_id: int, moment: datetime) -> Position:
        """Return the position just before the first message created at or after a time."""
        row = await self._database.row("log_position_at", {"queue_id": queue_id, "time": moment})
        assert row is not None
        return Position(*row)

    async def get(self, partition_id: int, transaction_id: str) -> dict[str, Any] | None:
        """One message."""
        found = await self.browse(1, partition_id=partition_id, transaction_id=transaction_id)
        return found[0] if found else None

    async def delete(self, partition_id: int, transaction_id: str) -> bool:
        """Delete one message from the log; groups that have not read it yet will not get it."""
        params = {"partition_id": partition_id, "transaction_id": transaction_id}
        return await self._database.row("delete_message", params) is not None

    def _decrypted(self, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for record in records:
            if record["encrypted"]:
                record["payload"] = self._cipher.decrypt(record["payload"], record["transaction_id"])
        return records
