"""API keys: the list, and creating and revoking them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from nicegui import ui

from ...client import QueenError
from ..components import action, badge
from ..frame import Frame, act
from ..parts import Listing, box, button, confirm, field
from ..words import ago, clock, parsed

_COLUMNS: list[dict[str, Any]] = [
    {"name": "name", "label": "Key", "sort": True},
    {"name": "rights", "label": "Role and scopes", "class": "wrap"},
    {"name": "state", "label": "State"},
    {"name": "used", "label": "Last use", "align": "right"},
    {"name": "expires", "label": "Expires (UTC)", "align": "right"},
    {"name": "createdAt", "label": "Created", "align": "right", "sort": True},
    {"name": "act", "label": "", "align": "right"},
]
_ROLES = {"": "No role", "read-only": "read-only", "read-write": "read-write", "admin": "admin"}


def register() -> None:
    """Register the route."""
    ui.page("/keys")(_page)


async def _page() -> None:
    frame = Frame("API keys", "/keys", "Credentials for the API, with roles and scopes.")
    queen = frame.session.queen

    async def revoke(_: str, id_: str) -> None:
        text = f"Brokers reject the key {id_} within five seconds. This cannot be undone."
        if await confirm("Revoke the key?", text, "Revoke"):
            await act(queen.admin.request("DELETE", "keys", id_), "Revoked the key.")
            await live.refresh()

    async def create() -> None:
        wanted = await _ask()
        if wanted is None:
            return
        try:
            made = await queen.admin.request("POST", "keys", body=wanted)
        except QueenError as error:
            ui.notify(str(error), type="negative", multi_line=True, timeout=8000, close_button="Close")
            return
        await live.refresh()
        await _show_secret(made["name"], made["key"])

    with frame.body:
        listing = Listing(_COLUMNS, sort="-createdAt", empty_text="No key matches.", on_action=revoke)
    with frame.actions:
        field("Search keys", on_change=listing.find)
        button("New key", create, kind="main")
    live = await frame.live_list(listing, "keys", name="keys", row=_row, every=2.0)


async def _ask() -> dict[str, Any] | None:
    """Return the key that the user describes; None if they cancel."""
    with ui.dialog() as dialog, ui.card().classes("qs-dialog"):
        with ui.element("h2"):
            ui.label("New API key")
        name = field("Name").classes("wide")
        role = ui.select(_ROLES, value="").props('outlined dense aria-label="Role"').classes("qs-field wide")
        scopes = field("Scopes, such as queue:orders.*:push, stream:shop/*:consume").classes("wide")
        expires = field("Expires, such as 2027-01-31T00:00:00Z (empty: never)").classes("wide")
        with box("row"):
            button("Cancel", dialog.close)
            button("Create", lambda: dialog.submit(True), kind="main")
    is_wanted = await dialog
    dialog.delete()
    if not is_wanted:
        return None
    return {
        "name": name.value or "",
        "role": role.value or None,
        "scopes": [part.strip() for part in (scopes.value or "").split(",") if part.strip()] or None,
        "expiresAt": (expires.value or "").strip() or None,
    }


async def _show_secret(name: str, secret: str) -> None:
    with ui.dialog().props("persistent") as dialog, ui.card().classes("qs-dialog"):
        with ui.element("h2"):
            ui.label(f"The key {name}")
        with ui.element("p"):
            ui.label("Copy it now. It is not shown again.")
        with ui.element("pre").classes("qs-secret mono"):
            shown = ui.label(secret)
        with box("row"):
            button("Done", lambda: dialog.submit(True), kind="main")
    await dialog
    shown.text = ""
    dialog.delete()


def _row(key: dict[str, Any]) -> dict[str, Any]:
    expires = parsed(key["expiresAt"])
    is_over = expires is not None and expires <= datetime.now(UTC)
    state = "revoked" if key["revokedAt"] else "expired" if is_over else "active"
    return {
        "id": key["id"],
        "name": {"text": key["name"], "sub": key["id"]},
        "rights": [
            *([badge(key["role"], "accent")] if key["role"] else []),
            {"text": ", ".join(key["scopes"] or []), "mono": True},
        ],
        "state": badge(state, {"active": "good", "revoked": "bad"}.get(state, "calm")),
        "used": ago(key["lastUsedAt"]),
        "expires": clock(key["expiresAt"]) if key["expiresAt"] else "never",
        "createdAt": {"text": ago(key["createdAt"]), "sub": f"by {key['createdBy']}"},
        "act": [action("Revoke", "revoke", tone="bad")] if state == "active" else "",
    }
