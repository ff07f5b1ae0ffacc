"""The audit log: caller, time and address of each administrative act."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from .database import Database
from .page import Page, Rows

_MOST_SUBJECT = 2000  # characters


class Audit:
    """Administrative acts, with a retention time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def note(
        self, caller: str, kind: str, address: str, action: str, subject: str | None, status: int
    ) -> None:
        """Record an act."""
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
        """Return a page of the acts (of a caller, between two times), newest first, and the total."""
        chosen: dict[str, Any] = {"caller": caller, "from": since, "to": until}
        return await self._database.page("list_audit", page, **chosen)

    async def forget(self, seconds: float) -> int:
        """Delete older acts; return their number."""
        return await self._database.execute("forget_audit", {"seconds": seconds})
