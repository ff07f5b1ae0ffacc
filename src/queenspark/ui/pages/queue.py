"""A queue: its messages, partitions, groups and options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from nicegui import ui

from ..components import Table, action, badge, link
from ..frame import Frame, act
from ..parts import PAGE_ROWS, Pager, Segments, Tiles, box, button, confirm, facts, field, panel, tone_of, url
from ..tabs import Show, Tab, Tabs
from ..words import ago, number, rate
from .message import MessageDrawer, shown_json

_STATES = {
    None: "All",
    "pending": "Pending",
    "processing": "In flight",
    "completed": "Completed",
    "dead_letter": "Dead",
}
_PARTIAL = "Older messages may match: choose a partition to find them."
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
        self.until = ""
        self.offset = 0
        self.has_more = False
        self.messages: dict[str, dict[str, Any]] = {}
        self.pager: Pager | None = None  # of the partitions

    async def build(self) -> None:
        """Make the page."""
        with self.frame.actions:
            button("Push a message", self._push, kind="main", right="queue:push")
            button("Delete", self._delete, kind="bad", right="queue:admin")
        with self.frame.body:
            self.tiles = Tiles(
                ("Messages", "Pending", "In flight", "Pushed", "Popped", "Acked", "Partitions", "Groups")
            )
            self._messages_panel()
            ui.element("div").style("height: 20px")
            self.tabs = Tabs(self.frame, self._tabs())
        self.drawer = MessageDrawer(self.queen, self._refresh_messages)
        self.live = await self.frame.live(("queue", self.name), lambda _: self._describe(), self._show)
        self.live_messages = await self.frame.live(self._key, self._fetch, self._show_messages)
        await self.tabs.start()

    async def _describe(self) -> Any:
        return await self.queen.admin.request("GET", "resources", "queues", self.name, query={"limit": 1})

    def _tabs(self) -> tuple[Tab, ...]:
        key = ("queue", self.name)
        return (
            Tab("Groups", key, lambda _: self._describe(), _build_groups),
            Tab("Partitions", self._partitions_key, self._fetch_partitions, self._build_partitions),
            Tab("Options", key, lambda _: self._describe(), _build_options),
        )

    def _partitions_key(self) -> tuple[Any, ...]:
        return ("queue", self.name, "partitions", 0 if self.pager is None else self.pager.offset)

    async def _fetch_partitions(self, key: tuple[Any, ...]) -> Any:
        query = {"limit": PAGE_ROWS + 1, "offset": key[-1]}
        return await self.queen.admin.request("GET", "resources", "queues", self.name, query=query)

    def _build_partitions(self) -> Show:
        with panel(flush=True):
            table = Table(
                [
                    {"name": "name", "label": "Partition"},
                    {"name": "created", "label": "Created", "align": "right"},
                ],
                empty="No partitions yet.",
            )
            pager = self.pager = Pager(self._refresh_tab, by_name=True)

        def show(detail: dict[str, Any]) -> None:
            found = detail["partitions"]
            pager.show(len(found))
            table.show(
                [
                    {"id": each["id"], "name": each["name"], "created": ago(each["createdAt"])}
                    for each in found[:PAGE_ROWS]
                ]
            )

        return show

    async def _refresh_tab(self) -> None:
        await self.tabs.refresh()

    def _messages_panel(self) -> None:
        with panel(flush=True):
            with box("qs-title"):
                ui.label("Messages")
                with box("right"):
                    field("Partition", on_change=self._of_partition).style("width: 130px")
                    field("Pushed since, such as 2026-01-31", on_change=self._since).style("width: 230px")
                    field("Pushed before", on_change=self._until).style("width: 130px")
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
                self.partial = ui.label(_PARTIAL)
                self.partial.set_visibility(False)
                button("‹ Newer", lambda: self._turn(-1))
                button("Older ›", lambda: self._turn(1))

    def _key(self) -> tuple[Any, ...]:
        return ("messages", self.name, self.partition, self.state, self.since, self.until, self.offset)

    async def _fetch(self, key: tuple[Any, ...]) -> Any:
        _, name, partition, state, since, until, offset = key
        query = {
            "queue": name,
            "partition": partition or None,
            "status": state,
            "from": since or None,
            "to": until or None,
            "limit": _ROWS + 1,
            "offset": offset,
        }
        return await self.queen.admin.request("GET", "messages", query=query)

    def _show_messages(self, response: dict[str, Any]) -> None:
        found = response["messages"]
        self.messages = {_id(message): message for message in found}
        self.has_more = len(found) > _ROWS
        self.where.text = (
            f"{number(self.offset + 1)}–{number(self.offset + min(_ROWS, len(found)))}, newest first"
        )
        self.partial.set_visibility(not response["complete"] and not self.has_more)
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

    async def _since(self, text: str) -> None:
        self.since, self.offset = text, 0
        await self.live_messages.refresh()

    async def _until(self, text: str) -> None:
        self.until, self.offset = text, 0
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
        self.tiles.show("In flight", number(counts["processing"]))
        for name in ("Pushed", "Popped", "Acked"):
            self.tiles.show(name, rate(detail["rates"][f"{name.lower()}PerSecond"]), "/s")
        self.tiles.show("Partitions", number(detail["partitionCount"]))
        self.tiles.show("Groups", number(len(detail["consumerGroups"])))

    async def _open(self, _: str, id_: str) -> None:
        message = self.messages.get(id_)
        if message is not None:
            await self.drawer.open(message)

    async def _refresh_messages(self) -> None:
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
                {"name": "poppedPerSecond", "label": "Popped/s", "align": "right"},
                {"name": "ackedPerSecond", "label": "Acked/s", "align": "right"},
                {"name": "lag", "label": "Lag", "align": "right"},
                {"name": "processing", "label": "In flight", "align": "right"},
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
                    **{name: rate(value) for name, value in group["rates"].items()},
                    "lag": number(group["lag"]),
                    "processing": number(group["processing"]),
                    "oldest": ago(group["oldest"]) if group["oldest"] else "–",
                }
                for group in detail["consumerGroups"]
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


def _short(value: Any) -> str:
    text = shown_json(value)
    return text if len(text) <= _SHORT else text[:_SHORT] + "…"
