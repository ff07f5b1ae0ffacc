"""The audit log: who did which administrative act, when and from where."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from .database import Database
from .page import Page, Rows

_MOST_SUBJECT = 2000  # characters


class Audit:
    """Administrative acts, kept for a while."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def note(
        self, caller: str, kind: str, address: str, action: str, subject: str | None, status: int
    ) -> None:
        """Note an act."""
        params = {
            "caller": caller.replace("\x00", ""),
            "kind": kind,
            "address": address,
            "action": action,
            "subject": None if subject is None else subject.replace("\x00", "")[:_MOST_SUBJECT],
            "status": status,
        }
        await self._database.execute("add_audit", params)

    async def page(
        self,
        page: Page,
        caller: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Rows:
        """A page of the acts (of a caller, between two times), the newest first; and how many there are."""
        chosen: dict[str, Any] = {"caller": caller, "from": since, "to": until}
        return await self._database.page("list_audit", page, **chosen)

    async def forget(self, seconds: float) -> int:
        """Remove what is older; how much that was."""
        return await self._database.execute("forget_audit", {"seconds": seconds})
