"""The drawer beside the timeline: one window with its times, groups and messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from nicegui import ui

from ....client import AsyncStream, QueenError
from ...frame import Frame, act
from ...parts import box, button, code, confirm, error_box, facts, tone_of
from ...words import ago, clock, number, plural

_PAGE = 20


class WindowDrawer:
    """Shows one window at a time."""

    def __init__(self, frame: Frame, stream: AsyncStream, after: Callable[[], Awaitable[None]]) -> None:
        self._queen = frame.session.queen
        self._stream = stream
        self._after = after
        self._box = box("qs-drawer").props('role="dialog" aria-label="Window"')
        self._box.set_visibility(False)
        ui.keyboard(on_key=lambda event: self.close() if event.key.escape else None)

    def close(self) -> None:
        """Close the drawer."""
        self._box.set_visibility(False)

    async def open(self, bar: dict[str, Any], window: dict[str, Any] | None, group: str | None) -> None:
        """Show the window of a bar. `window` is None if the bar is open, or if the window is gone."""
        self._box.clear()
        self._box.set_visibility(True)
        with self._box:
            with box("qs-head").style("margin: 0; flex-wrap: nowrap"):
                with box():
                    ui.label("Window").classes("qs-crumb")
                    with ui.element("h1"):
                        ui.label("all keys" if bar["key"] == "__GLOBAL__" else bar["key"])
                with box("right"):
                    button("Close", self.close)
            if bar["state"] == "open":
                self._open_window(bar)
                return
            if window is None:
                error_box("The timeline no longer has this window. Close this, and select it again.")
                return
            facts(
                (
                    ("Start", clock(window["start"])),
                    ("End", clock(window["end"])),
                    ("Records", number(window["count"])),
                    ("Revision", _revision(window)),
                    ("Version", str(window["version"])),
                    ("Sealed", f"{clock(window['sealedAt'])} ({ago(window['sealedAt'])})"),
                    ("Id", window["id"]),
                )
            )
            if window.get("aggregates"):
                ui.label("Aggregates").style("font-weight: 600")
                facts([(name, str(value)) for name, value in window["aggregates"].items()])
            for state in window["groups"]:
                self._group(window, state)
            if group is not None:
                with box("row").style("display: flex; gap: 8px"):
                    button(
                        f"Seek {group} to this window",
                        lambda: self._seek(window, group),
                        right="stream:admin",
                    )
            ui.label("Messages").style("font-weight: 600")
            room = box().style("display: flex; flex-direction: column; gap: 10px")
            await self._page(window, None, room)

    def _open_window(self, bar: dict[str, Any]) -> None:
        facts(
            (
                ("Start", _clock_ms(bar["start"])),
                ("End", _clock_ms(bar["end"])),
                ("Records so far", number(bar["count"])),
                ("State", "open, sealed when its grace period is over"),
            )
        )

    def _group(self, window: dict[str, Any], state: dict[str, Any]) -> None:
        with box("qs-message"):
            with ui.element("header"):
                ui.label(state["consumerGroup"]).style("font-weight: 600; color: var(--ink)")
                with ui.element("span").classes(f"qs-badge {tone_of(state['state'])}"):
                    ui.label(state["state"])
            pairs = []
            if state["attempts"]:
                pairs.append(("Failed attempts", number(state["attempts"])))
            if state["leaseHolder"] or state["leaseExpiresAt"]:
                until = clock(state["leaseExpiresAt"])
                pairs.append(("Leased by", f"{state['leaseHolder'] or 'a consumer'} until {until}"))
            if state["availableAt"]:
                pairs.append(("Retried at", clock(state["availableAt"])))
            if state["error"]:
                pairs.append(("Last error", state["error"]))
            if pairs:
                facts(pairs)
            if state["state"] == "dead":
                with box("row").style("display: flex; gap: 8px"):
                    button(
                        "Retry",
                        lambda: self._dead(window, state["consumerGroup"], "retry"),
                        right="queue:admin",
                    )
                    button(
                        "Delete",
                        lambda: self._dead(window, state["consumerGroup"], "delete"),
                        kind="bad",
                        right="queue:admin",
                    )

    async def _dead(self, window: dict[str, Any], group: str, verb: str) -> None:
        query = {
            "consumerGroup": group,
            "partitionId": window["partitionId"],
            "transactionId": window["transactionId"],
        }
        request = self._queen.admin.request
        if verb == "retry":
            done = await confirm(
                "Retry this dead window?", f"It will be redelivered to {group}.", "Retry", bad=False
            ) and await act(request("POST", "dlq", "retry", query=query), "Retrying the window.")
        else:
            done = await confirm(
                "Delete this dead window?", "It will not be redelivered.", "Delete"
            ) and await act(request("DELETE", "dlq", query=query), "Deleted the dead window.")
        if done:
            self.close()
            await self._after()

    async def _seek(self, window: dict[str, Any], group: str) -> None:
        text = "The group gets all windows that end with this one or later, of every key. Leases are revoked."
        end = clock(window["end"])
        # A seek takes the windows that end after a time.
        time = datetime.fromisoformat(window["end"]) - timedelta(microseconds=1)
        if await confirm(
            f"Seek {group} to the window that ends at {end}?", text, "Seek", bad=False
        ) and await act(
            self._stream.seek(group, time), f"{group} continues with the windows that end at {end}."
        ):
            self.close()
            await self._after()

    async def _page(self, window: dict[str, Any], cursor: str | None, room: Any) -> None:
        try:
            found = await self._stream.window(
                window["partitionId"], window["transactionId"], limit=_PAGE, cursor=cursor
            )
        except QueenError as error:
            with room:
                error_box(str(error))
            return
        with room:
            for message in found["messages"]:
                with box("qs-message"):
                    with ui.element("header"):
                        ui.label(f"{message['queue']} / {message['partition']}")
                        ui.label(clock(message["createdAt"]))
                    code(msgspec.json.format(msgspec.json.encode(message["data"]), indent=2).decode())
            if not found["messages"] and cursor is None:
                ui.label("Its messages are no longer in the log.").classes("soft")
            if found["nextCursor"]:
                more = button("More messages", lambda: self._more(window, found["nextCursor"], room, more))

    async def _more(self, window: dict[str, Any], cursor: str, room: Any, more: Any) -> None:
        more.delete()
        await self._page(window, cursor, room)


def _revision(window: dict[str, Any]) -> str:
    replaced = window["replaces"]
    return str(window["revision"]) + (f", replaces {plural(len(replaced), 'window')}" if replaced else "")


def _clock_ms(milliseconds: float) -> str:
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%H:%M:%S}"
