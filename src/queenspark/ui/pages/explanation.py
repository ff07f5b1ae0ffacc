"""Why the next window of a stream or job is not sealed yet, as panels of a tab."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nicegui import ui

from ..parts import box, facts, panel
from ..words import clock, number


def build() -> Callable[[dict[str, Any]], None]:
    """Make the panels and return the function that fills them."""
    room = box("qs-grid two")

    def show(found: dict[str, Any]) -> None:
        room.clear()
        with room:
            _reasons(found["reasons"])
            _next_window(found["next"])

    return show


def _reasons(reasons: list[dict[str, Any]]) -> None:
    with panel("Why the next window is not sealed yet"):
        for reason in reasons:
            with box().style("padding: 6px 0"):
                ui.label(_sentence(reason["text"])).style("font-weight: 500")
                ui.label(_sentence(reason["fix"])).classes("soft")
        if not reasons:
            ui.label("Nothing holds it back.")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _next_window(window: dict[str, Any] | None) -> None:
    with panel("Next window"):
        if window is None:
            ui.label("No window is open.").classes("soft")
            return
        facts(
            (
                ("Key", window["key"]),
                ("Start", clock(window["start"])),
                ("End", clock(window["end"])),
                ("Records", number(window["records"])),
                ("Sealed at about", clock(window["sealedAtAbout"])),
            )
        )
