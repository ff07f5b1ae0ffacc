"""The audit log: administrative actions, newest first."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from ..components import badge
from ..frame import Frame
from ..parts import Listing, field
from ..words import clock

_COLUMNS: list[dict[str, Any]] = [
    {"name": "at", "label": "Time (UTC)"},
    {"name": "caller", "label": "Caller"},
    {"name": "action", "label": "Operation", "class": "mono wrap"},
    {"name": "subject", "label": "Subject", "class": "wrap"},
    {"name": "address", "label": "Address", "class": "mono"},
    {"name": "status", "label": "Status", "align": "right"},
]


def register() -> None:
    """Register the route."""
    ui.page("/audit")(_page)


async def _page() -> None:
    frame = Frame("Audit log", "/audit", "Administrative operations with caller, time and address.")
    queen = frame.session.queen
    with frame.body:
        listing = Listing(_COLUMNS, sort="at", empty_text="No operation matches.")
    with frame.actions:
        field("Caller", on_change=listing.find)

    async def fetch(key: tuple[Any, ...]) -> Any:
        _, limit, offset, caller = key
        query = {"limit": limit, "offset": offset, "caller": caller or None}
        return await queen.admin.request("GET", "audit", query=query)

    def show(response: dict[str, Any]) -> None:
        listing.show([_row(act) for act in response["acts"]], response["total"])

    live = await frame.live(
        lambda: ("audit", listing.limit, listing.offset, listing.search), fetch, show, 2.0
    )
    listing.on_change = live.refresh


def _row(act: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": act["id"],
        "at": clock(act["at"]),
        "caller": {"text": act["caller"], "sub": act["kind"] if act["kind"] != act["caller"] else ""},
        "action": {"text": act["action"], "mono": True},
        "subject": act["subject"] or "–",
        "address": {"text": act["address"], "mono": True},
        "status": badge(str(act["status"]), "good" if act["status"] < 400 else "bad"),
    }
