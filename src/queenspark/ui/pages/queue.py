"""A queue: its messages, partitions, groups and options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from nicegui import ui

from ...client import QueenError
from ..components import Table, action, badge, link
from ..frame import Frame, act
from ..parts import (
    Segments,
    Tiles,
    box,
    button,
    code,
    confirm,
    error_box,
    facts,
    field,
    panel,
    tone_of,
    url,
)
from ..tabs import Tab, Tabs
from ..words import ago, clock, number

_STATES = {
    None: "All",
    "pending": "Pending",
    "processing": "Leased",
    "completed": "Done",
    "dead_letter": "Dead",
}
_ROWS = 25
_SHORT = 90  # characters of a payload in a row


def register() -> None:
    """Register the route."""
    ui.page("/queue")(_page)


async def _page(name: str) -> None:
    await _QueuePage(name).build()


class _QueuePage:
    """One queue in one browser."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.frame = Frame(name, "/queues", crumb=("Queues", "/queues"))
        self.queen = self.frame.session.queen
        self.state: str | None = None
        self.partition = ""
        self.since = ""
        self.offset = 0
        self.has_more = False
        self.messages: dict[str, dict[str, Any]] = {}

    async def build(self) -> None:
        """Make the page."""
        with self.frame.actions:
            button("Push a message", self._push, kind="main", right="queue:push")
            button("Delete", self._delete, kind="bad", right="queue:admin")
        with self.frame.body:
            self.tiles = Tiles(("Messages", "Pending", "Leased", "Partitions", "Groups"))
            self._messages_panel()
            ui.element("div").style("height: 20px")
            self.tabs = Tabs(self.frame, self._tabs())
        self._drawer = box("qs-drawer").props('role="dialog" aria-label="Message"')
        self._drawer.set_visibility(False)
        ui.keyboard(on_key=lambda event: self._drawer.set_visibility(False) if event.key.escape else None)
        self.live = await self.frame.live(("queue", self.name), lambda _: self._describe(), self._show)
        self.live_messages = await self.frame.live(self._key, self._fetch, self._show_messages)
        await self.tabs.start()

    async def _describe(self) -> Any:
        return await self.queen.admin.request("GET", "resources", "queues", self.name, query={"limit": 100})

    def _tabs(self) -> tuple[Tab, ...]:
        key = ("queue", self.name)
        return (
            Tab("Groups", key, self._describe, _build_groups),
            Tab("Partitions", key, self._describe, _build_partitions),
            Tab("Options", key, self._describe, _build_options),
        )

    def _messages_panel(self) -> None:
        with panel(flush=True):
            with box("qs-title"):
                ui.label("Messages")
                with box("right"):
                    field("Partition", on_change=self._of_partition).style("width: 130px")
                    field("Pushed since, such as 2026-01-31", on_change=self._of_time).style("width: 230px")
                    Segments(_STATES, None, self._of_state, "State")
            self.table = Table(
                [
                    {"name": "data", "label": "Payload", "class": "mono"},
                    {"name": "status", "label": "State"},
                    {"name": "partition", "label": "Partition"},
                    {"name": "created", "label": "Pushed", "align": "right"},
                    {"name": "open", "label": "", "align": "right"},
                ],
                empty="No message matches. Push one with the button above, or with `queenspark push`.",
                on_action=self._open,
            )
            with box("qs-pager"):
                self.where = ui.label()
                button("‹ Newer", lambda: self._turn(-1))
                button("Older ›", lambda: self._turn(1))

    def _key(self) -> tuple[Any, ...]:
        return ("messages", self.name, self.partition, self.state, self.since, self.offset)

    async def _fetch(self, key: tuple[Any, ...]) -> Any:
        _, name, partition, state, since, offset = key
        query = {
            "queue": name,
            "partition": partition or None,
            "status": state,
            "from": since or None,
            "limit": _ROWS + 1,
            "offset": offset,
        }
        return await self.queen.admin.request("GET", "messages", query=query)

    def _show_messages(self, answer: dict[str, Any]) -> None:
        found = answer["messages"]
        self.messages = {_id(message): message for message in found}
        self.has_more = len(found) > _ROWS
        self.where.text = (
            f"{number(self.offset + 1)}–{number(self.offset + min(_ROWS, len(found)))}, newest first"
        )
        self.table.show(
            [
                {
                    "id": _id(message),
                    "data": {"text": _short(message["data"]), "mono": True},
                    "status": badge(message["status"].replace("_", " "), tone_of(message["status"])),
                    "partition": message["partition"],
                    "created": ago(message["createdAt"]),
                    "open": action("Open", "open"),
                }
                for message in found[:_ROWS]
            ]
        )

    async def _of_partition(self, text: str) -> None:
        self.partition, self.offset = text, 0
        await self.live_messages.refresh()

    async def _of_time(self, text: str) -> None:
        self.since, self.offset = text, 0
        await self.live_messages.refresh()

    async def _of_state(self, state: str | None) -> None:
        self.state, self.offset = state, 0
        await self.live_messages.refresh()

    async def _turn(self, by: int) -> None:
        offset = self.offset + by * _ROWS
        if offset >= 0 and (by < 0 or self.has_more):
            self.offset = offset
            await self.live_messages.refresh()

    def _show(self, detail: dict[str, Any]) -> None:
        about = [text for text in (detail["namespace"], detail["task"]) if text]
        self.frame.about.text = " · ".join([*about, f"created {ago(detail['createdAt'])}"])
        counts = detail["messages"]
        self.tiles.show("Messages", number(counts["total"]))
        self.tiles.show("Pending", number(counts["pending"]))
        self.tiles.show("Leased", number(counts["processing"]))
        self.tiles.show("Partitions", number(detail["partitionCount"]))
        self.tiles.show("Groups", number(len(detail["consumerGroups"])))

    async def _open(self, _: str, id_: str) -> None:
        message = self.messages.get(id_)
        if message is None:
            return
        path = (message["partitionId"], message["transactionId"])
        self._drawer.clear()
        self._drawer.set_visibility(True)
        try:
            traces = (await self.queen.admin.request("GET", "traces", *path))["traces"]
        except QueenError as error:
            traces = []
            with self._drawer:
                error_box(str(error))
        with self._drawer:
            with box("qs-head").style("margin: 0; flex-wrap: nowrap"):
                with box():
                    ui.label("Message").classes("qs-crumb")
                    with ui.element("h1"):
                        ui.label(message["partition"])
                with box("right"):
                    button("Close", lambda: self._drawer.set_visibility(False))
            facts(
                (
                    ("State", message["status"].replace("_", " ")),
                    ("Pushed", clock(message["createdAt"])),
                    ("Transaction id", message["transactionId"]),
                    ("Trace id", message["traceId"] or "–"),
                    ("Headers", _json(message.get("headers", {}))),
                )
            )
            ui.label("Payload").style("font-weight: 600")
            code(_json(message["data"], 2))
            ui.label("Traces").style("font-weight: 600")
            for trace in traces:
                with box("qs-message"):
                    with ui.element("header"):
                        ui.label(f"{trace['eventType']} · {', '.join(trace['traceNames']) or 'no name'}")
                        ui.label(clock(trace["createdAt"]))
                    code(_json(trace["data"], 2))
            if not traces:
                ui.label("No traces for this message.").classes("soft")
            with box().style("display: flex; gap: 8px"):
                if message["status"] == "dead_letter":
                    button(
                        "Retry",
                        lambda: self._retry(path),
                        right="queue:admin",
                    )
                button("Delete message", lambda: self._remove(path), kind="bad", right="queue:admin")

    async def _retry(self, path: tuple[str, ...]) -> None:
        if await confirm("Retry this message?", "Its groups get it again.", "Retry", bad=False):
            await self._change("POST", (*path, "retry"), "Retrying the message.")

    async def _remove(self, path: tuple[str, ...]) -> None:
        if await confirm("Delete this message?", "No group will get it any more.", "Delete"):
            await self._change("DELETE", path, "Deleted the message.")

    async def _change(self, method: str, path: tuple[str, ...], done: str) -> None:
        if await act(self.queen.admin.request(method, "messages", *path), done):
            self._drawer.set_visibility(False)
            await self.live_messages.refresh()

    async def _push(self) -> None:
        with ui.dialog() as dialog, ui.card().classes("qs-dialog"):
            with ui.element("h2"):
                ui.label(f"Push a message to {self.name}")
            partition = field("Partition (empty: Default)")
            payload = ui.textarea(value='{"hello": "world"}').props('outlined autogrow aria-label="Payload"')
            payload.classes("qs-field mono")
            with box("row"):
                button("Cancel", dialog.close)
                button("Push", lambda: dialog.submit(True), kind="main")
        answer = await dialog
        text, where = payload.value, partition.value
        dialog.delete()
        if not answer:
            return
        try:
            data = msgspec.json.decode(text or "")
        except msgspec.DecodeError as error:
            ui.notify(f"The payload is not valid JSON: {error}", type="negative")
            return
        queue = self.queen.queue(self.name)
        if await act((queue.partition(where) if where else queue).push([data]), "Pushed the message."):
            await self.live_messages.refresh()
            await self.live.refresh()

    async def _delete(self) -> None:
        text = "Its messages, partitions and groups are deleted with it."
        if await confirm(f"Delete the queue {self.name}?", text, "Delete") and await act(
            self.queen.queue(self.name).delete(), f"Deleted {self.name}."
        ):
            ui.navigate.to("/queues")


def _build_groups() -> Callable[[dict[str, Any]], None]:
    with panel(flush=True):
        table = Table(
            [
                {"name": "name", "label": "Group"},
                {"name": "lag", "label": "Lag", "align": "right"},
                {"name": "processing", "label": "Leased", "align": "right"},
                {"name": "oldest", "label": "Oldest unacked", "align": "right"},
            ],
            empty="No group has read this queue yet: queen.queue(name).group(group).consume(…)",
        )

    def show(detail: dict[str, Any]) -> None:
        table.show(
            [
                {
                    "id": group["name"],
                    "name": link(group["name"], url("/group", name=group["name"])),
                    "lag": number(group["lag"]),
                    "processing": number(group["processing"]),
                    "oldest": ago(group["oldest"]) if group["oldest"] else "–",
                }
                for group in detail["consumerGroups"]
            ]
        )

    return show


def _build_partitions() -> Callable[[dict[str, Any]], None]:
    with panel(flush=True):
        table = Table(
            [
                {"name": "name", "label": "Partition"},
                {"name": "created", "label": "Created", "align": "right"},
            ],
            empty="No partitions yet.",
        )

    def show(detail: dict[str, Any]) -> None:
        table.show(
            [
                {"id": each["id"], "name": each["name"], "created": ago(each["createdAt"])}
                for each in detail["partitions"]
            ]
        )

    return show


def _build_options() -> Callable[[dict[str, Any]], None]:
    room = panel()

    def show(detail: dict[str, Any]) -> None:
        room.clear()
        with room:
            facts([(option, str(value)) for option, value in detail["options"].items()])

    return show


def _id(message: dict[str, Any]) -> str:
    return f"{message['partitionId']}/{message['transactionId']}"


def _json(value: Any, indent: int = 0) -> str:
    text = msgspec.json.encode(value)
    return msgspec.json.format(text, indent=indent).decode() if indent else text.decode()


def _short(value: Any) -> str:
    text = _json(value)
    return text if len(text) <= _SHORT else text[:_SHORT] + "…"
