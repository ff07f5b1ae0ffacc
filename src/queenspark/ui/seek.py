"""Seek: the dialog that asks where a group should continue, and the request."""

from __future__ import annotations

from datetime import UTC, datetime

from nicegui import ui

from ..client import AsyncQueen
from .parts import box, button, field, stream_of


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


async def seek(queen: AsyncQueen, queue: str, group: str, where: str) -> None:
    """Seek a group to `beginning`, `end` or a time: of windows the time they end, not that of their seal."""
    stream = stream_of(queue)
    if stream is None or where in ("beginning", "end"):
        await queen.queue(queue).group(group).seek(where)
    else:
        namespace, name = stream
        await queen.stream(name, namespace).seek(group, where)
