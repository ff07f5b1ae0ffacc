"""A message in a drawer: payload, headers, traces, and the actions on it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec
from nicegui import ui

from ...client import AsyncQueen, QueenError
from ..frame import act
from ..parts import box, button, code, confirm, error_box, facts
from ..words import clock, plural

_MOST_TRACES = 50  # of a name


class MessageDrawer:
    """The drawer of a page with messages. `after` is called when a message was changed."""

    def __init__(self, queen: AsyncQueen, after: Callable[[], Awaitable[None]]) -> None:
        self._queen = queen
        self._after = after
        self._box = box("qs-drawer").props('role="dialog" aria-label="Message"')
        self.close()
        ui.keyboard(on_key=lambda event: self.close() if event.key.escape else None)

    def close(self) -> None:
        """Hide the drawer."""
        self._box.set_visibility(False)

    async def open(self, message: dict[str, Any]) -> None:
        """Show a message, as the API describes it."""
        path = (message["partitionId"], message["transactionId"])
        self._clear("Message", message["partition"])
        try:
            traces = (await self._queen.admin.request("GET", "traces", *path))["traces"]
        except QueenError as error:
            traces = []
            with self._box:
                error_box(str(error))
        with self._box:
            facts(
                (
                    ("Queue", message["queue"]),
                    ("State", message["status"].replace("_", " ")),
                    ("Pushed", clock(message["createdAt"])),
                    ("Transaction id", message["transactionId"]),
                    ("Trace id", message["traceId"] or "–"),
                    ("Headers", shown_json(message.get("headers", {}))),
                )
            )
            ui.label("Payload").style("font-weight: 600")
            code(shown_json(message["data"], 2))
            ui.label("Traces").style("font-weight: 600")
            for trace in traces:
                self._trace(trace, trace["eventType"])
            if not traces:
                ui.label("No traces for this message.").classes("soft")
            with box().style("display: flex; gap: 8px"):
                if message["status"] == "dead_letter":
                    button("Retry", lambda: self._retry(path), right="queue:admin")
                button("Delete message", lambda: self._remove(path), kind="bad", right="queue:admin")

    async def _follow(self, name: str) -> None:
        """Show the traces of a name, over all messages and queues."""
        self._clear("Trace", name)
        query = {"limit": _MOST_TRACES}
        try:
            found = await self._queen.admin.request("GET", "traces", "by-name", name, query=query)
        except QueenError as error:
            with self._box:
                error_box(str(error))
            return
        with self._box:
            shown = min(found["total"], _MOST_TRACES)
            ui.label(
                f"{plural(found['total'], 'event')}, oldest first"
                + (f"; the first {shown} are shown" if shown < found["total"] else "")
            ).classes("soft")
            for trace in found["traces"]:
                self._trace(trace, f"{trace['eventType']} · {trace['queue']} / {trace['partition']}", of=name)

    def _trace(self, trace: dict[str, Any], title: str, of: str | None = None) -> None:
        """Show a trace, with links to its names, and with `of` to its message."""
        with box("qs-message"):
            with ui.element("header"):
                ui.label(title)
                ui.label(clock(trace["createdAt"]))
            code(shown_json(trace["data"], 2))
            with box():
                for name in trace["traceNames"]:
                    if name != of:
                        _link(f"Follow {name}", partial(self._follow, name))
                if of is not None:
                    _link("Open message", partial(self._read, trace))

    async def _read(self, trace: dict[str, Any]) -> None:
        path = (trace["partitionId"], trace["transactionId"])
        try:
            message = await self._queen.admin.request("GET", "messages", *path)
        except QueenError as error:
            ui.notify(str(error), type="negative")
            return
        await self.open(message)

    def _clear(self, kind: str, title: str) -> None:
        self._box.clear()
        self._box.set_visibility(True)
        with self._box, box("qs-head").style("margin: 0; flex-wrap: nowrap"):
            with box():
                ui.label(kind).classes("qs-crumb")
                with ui.element("h1"):
                    ui.label(title)
            with box("right"):
                button("Close", self.close)

    async def _retry(self, path: tuple[str, ...]) -> None:
        if await confirm("Retry this message?", "It will be redelivered to its groups.", "Retry", bad=False):
            await self._change("POST", (*path, "retry"), "Retrying the message.")

    async def _remove(self, path: tuple[str, ...]) -> None:
        if await confirm("Delete this message?", "It will no longer be delivered to any group.", "Delete"):
            await self._change("DELETE", path, "Deleted the message.")

    async def _change(self, method: str, path: tuple[str, ...], done: str) -> None:
        if await act(self._queen.admin.request(method, "messages", *path), done):
            self.close()
            await self._after()


def _link(text: str, on_click: Callable[[], Awaitable[None]]) -> None:
    with ui.element("button").classes("qs-link").on("click", lambda _: on_click()):
        ui.label(text)


def shown_json(value: Any, indent: int = 0) -> str:
    """A value as JSON, on one line or indented."""
    text = msgspec.json.encode(value)
    return msgspec.json.format(text, indent=indent).decode() if indent else text.decode()
