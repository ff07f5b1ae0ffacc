"""The dialog that asks where a group should continue."""

from __future__ import annotations

from datetime import UTC, datetime

from nicegui import ui

from .parts import box, button, field


async def ask_position(title: str, text: str) -> str | None:
    """Return `beginning`, `end` or a time; None if the user cancels."""
    with ui.dialog() as dialog, ui.card().classes("qs-dialog"):
        with ui.element("h2"):
            ui.label(title)
        with ui.element("p"):
            ui.label(text)
        time = field("Time, such as 2026-01-31T12:00:00Z", f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}")
        with box("row"):
            button("Cancel", dialog.close)
            button("To the beginning", lambda: dialog.submit("beginning"))
            button("To the end", lambda: dialog.submit("end"))
            button("To this time", lambda: dialog.submit("time"), kind="main")
    chosen: str | None = await dialog
    given: str = time.value
    dialog.delete()
    return given if chosen == "time" else chosen
