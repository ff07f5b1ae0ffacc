"""Browsing of messages in the log."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from .database import Database
from .encryption import Cipher
from .position import Position

CHECKED = 5000
"""If a status is wanted, about this many messages are checked."""

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

    async def browse(
        self, limit: int = 100, offset: int = 0, **chosen: Any
    ) -> tuple[list[dict[str, Any]], bool]:
        """Return messages with their status, newest first, and whether all that match were found.

        Not all are if a status is wanted that is rare among the messages that match otherwise.
        """
        params = {name: chosen.get(name) for name in _FILTERS}
        if params["queue_id"] is not None and params["partition"] is not None:
            wanted = {"queue_ids": [params["queue_id"]], "names": [params["partition"]]}
            found = await self._database.row("find_partitions", wanted)
            if found is None:
                return [], True
            params |= {"partition": None, "partition_id": found[2]}
        checked = limit + offset if params["status"] is None else CHECKED
        rows = await self._database.records(
            "browse_messages", {**params, "limit": limit, "offset": offset, "scanned": checked}
        )
        is_complete = params["status"] is None or rows[0]["checked"] < checked
        return self._decrypted([row for row in rows if row["id"] is not None]), is_complete

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
        found, _ = await self.browse(1, partition_id=partition_id, transaction_id=transaction_id)
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
