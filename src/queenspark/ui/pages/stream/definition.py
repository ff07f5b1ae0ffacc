"""The definition of a stream: its versions, and the dialog that redefines it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from nicegui import ui

from ....formats.definition import FIELDS
from ...frame import Frame
from ...parts import box, button, facts, panel
from ...words import clock, milliseconds, shape

_LATE = {
    "process": "produce a new revision",
    "warn": "produce a new revision, and are listed",
    "drop": "are dropped and listed",
}


def build() -> Callable[[list[dict[str, Any]]], None]:
    """Make the panels of a stream's versions and return the function that fills them."""
    room = box("qs-grid two")

    def show(versions: list[dict[str, Any]]) -> None:
        room.clear()
        with room:
            for version in versions:
                about = f"since {clock(version['createdAt'])}" + (
                    ", current" if version is versions[0] else ""
                )
                with panel(f"Version {version['version']}", about=about):
                    facts(_facts(version))

    return show


def _facts(version: dict[str, Any]) -> list[tuple[str, str]]:
    retention = version["windowRetentionMs"]
    pairs = [
        ("Windows", shape(version)),
        ("Sources", ", ".join(version["sourceQueues"])),
        (
            "Key",
            ", ".join(version["key"])
            or ("the partition" if version["partitioned"] else "none (global windows)"),
        ),
        ("Grace", milliseconds(version["windowGracePeriodMs"])),
        ("Lease", milliseconds(version["windowLeaseTimeoutMs"])),
        ("Retention", milliseconds(retention) if retention else "forever"),
        ("Time", version["eventTime"] or "push time"),
        ("Late records", _LATE[version["late"]]),
    ]
    pairs += [(name.capitalize(), version[name]) for name in ("where", "having") if version[name]]
    columns = version.get("columns", {})  # older brokers have none
    return [*pairs, *columns.items(), *version["aggregates"].items()]


async def ask_definition(frame: Frame, name: str, detail: dict[str, Any]) -> dict[str, Any] | None:
    """Return the definition that the user enters, starting from the current one; None without one."""
    current = {"source_queue_names": detail["sourceQueues"]} | {
        field.wire: detail[field.shown]
        for field in FIELDS.values()
        if field.shown is not None and detail.get(field.shown) is not None
    }
    with ui.dialog() as dialog, ui.card().classes("qs-dialog").style("width: 640px"):
        with ui.element("h2"):
            ui.label(f"Redefine {name}")
        with ui.element("p"):
            ui.label(
                "A change to the windows, the key or the event time starts a new version."
                " Other changes apply to the current version."
            )
        text = msgspec.json.format(msgspec.json.encode(current), indent=2).decode()
        editor = frame.editor(text, "JSON").style("max-height: 50vh")
        reset = ui.checkbox("Reset: recompute the history").props("dense")
        with box("row"):
            button("Cancel", dialog.close)
            button("Redefine", lambda: dialog.submit(True), kind="main")
    is_confirmed = await dialog
    given, is_reset = editor.value, reset.value
    dialog.delete()
    if not is_confirmed:
        return None
    try:
        body = msgspec.json.decode(given, type=dict[str, Any])
    except msgspec.DecodeError as error:
        ui.notify(f"The definition is not a valid JSON object: {error}", type="negative")
        return None
    return {**body, "reset": is_reset}
