"""Dead letters: messages and windows that a group gave up on, to retry or delete."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
from nicegui import ui

from ..components import Table, link
from ..frame import Frame, act
from ..parts import box, button, confirm, field, panel, queue_name, queue_url, url
from ..words import ago, number, plural

_ROWS = 50
_IDENTITY = ("consumerGroup", "partitionId", "transactionId")
_COLUMNS: list[dict[str, Any]] = [
    {"name": "error", "label": "Error", "class": "wrap"},
    {"name": "queue", "label": "Queue or stream"},
    {"name": "group", "label": "Group"},
    {"name": "partition", "label": "Partition or key"},
    {"name": "attempts", "label": "Attempts", "align": "right"},
    {"name": "failed", "label": "Failed", "align": "right"},
    {"name": "data", "label": "Payload", "class": "mono"},
]


def register() -> None:
    """Register the route."""
    ui.page("/dead-letters")(_page)


async def _page(queue: str = "", group: str = "") -> None:
    await _DeadLettersPage(queue, group).build()


class _DeadLettersPage:
    """The dead letters that match a filter."""

    def __init__(self, queue: str, group: str) -> None:
        self.frame = Frame("Dead letters", "/dead-letters", "Messages and windows that a group gave up on.")
        self.queen = self.frame.session.queen
        self.filter = {"queue": queue, "consumerGroup": group, "from": "", "to": ""}
        self.offset = 0
        self.total = 0

    async def build(self) -> None:
        """Make the page."""
        with self.frame.actions:
            for name, label in (
                ("queue", "Queue"),
                ("consumerGroup", "Group"),
                ("from", "Failed since"),
                ("to", "Failed before"),
            ):
                field(label, self.filter[name], on_change=partial(self._choose, name)).style("width: 150px")
        with self.frame.body, panel(flush=True):
            with box("qs-title"):
                self.text = ui.label()
                with box("right"):
                    self.buttons = {
                        "Retry": button(
                            "Retry", lambda: self._bulk("retry"), kind="main", right="queue:admin"
                        ),
                        "Delete": button(
                            "Delete", lambda: self._bulk("delete"), kind="bad", right="queue:admin"
                        ),
                    }
            self.table = Table(
                _COLUMNS, empty="No dead letters.", selectable=True, on_select=self._label_buttons
            )
            with box("qs-pager") as self.pager:
                button("‹ Newer", lambda: self._turn(-1))
                button("Older ›", lambda: self._turn(1))
        self.live = await self.frame.live(self._key, self._fetch, self._show)

    def _key(self) -> tuple[Any, ...]:
        return ("dlq", *self.filter.items(), ("limit", _ROWS), ("offset", self.offset))

    async def _fetch(self, key: tuple[Any, ...]) -> Any:
        query = {name: value or None if value != 0 else 0 for name, value in key[1:]}
        return await self.queen.admin.request("GET", "dlq", query=query)

    def _show(self, response: dict[str, Any]) -> None:
        self.total = response["total"]
        self._label_buttons()
        self.pager.set_visibility(self.total > _ROWS or self.offset > 0)
        self.text.text = plural(self.total, "dead letter") + (" match" if self._is_filtered else "")
        self.table.show(
            [
                {
                    "id": _id(letter),
                    "error": letter["errorMessage"] or "no error was given",
                    "queue": link(queue_name(letter["queue"]), queue_url(letter["queue"])),
                    "group": link(letter["consumerGroup"], url("/group", name=letter["consumerGroup"])),
                    "partition": letter["partition"],
                    "attempts": number(letter["retryCount"]),
                    "failed": ago(letter["failedAt"]),
                    "data": {"text": _short(letter["data"]), "mono": True},
                }
                for letter in response["messages"]
            ]
        )

    @property
    def _is_filtered(self) -> bool:
        return any(self.filter.values())

    @property
    def _may_act_on_all(self) -> bool:
        return bool(self.filter["queue"] or self.filter["consumerGroup"])

    def _label_buttons(self) -> None:
        """Say how many dead letters a button acts on."""
        count = ""
        if self.table.selected:
            count = f" {number(len(self.table.selected))} selected"
        elif self._may_act_on_all and self.total:
            count = f" all {number(self.total)}"
        for verb, made in self.buttons.items():
            made.text = verb + count

    async def _choose(self, name: str, text: str) -> None:
        self.filter[name], self.offset = text, 0
        self.total = 0  # of the filter before
        self.table.clear_selection()
        await self.live.refresh()

    async def _turn(self, by: int) -> None:
        offset = self.offset + by * _ROWS
        if 0 <= offset < max(1, self.total):
            self.offset = offset
            self.table.clear_selection()
            await self.live.refresh()

    async def _bulk(self, verb: str) -> None:
        """Retry or delete the selected dead letters, or all that match if none is selected."""
        chosen = list(self.table.selected)
        if not chosen and not self._may_act_on_all:
            ui.notify(
                "Select dead letters, or filter by queue or group to act on all that match.", type="warning"
            )
            return
        if not chosen and not self.total:
            ui.notify("No dead letters match.", type="warning")
            return
        what = plural(len(chosen) or self.total, "dead letter")
        text = (
            "They will be redelivered to their groups."
            if verb == "retry"
            else "They will not be redelivered."
        )
        if not await confirm(f"{verb.capitalize()} {what}?", text, verb.capitalize(), bad=verb == "delete"):
            return
        method, path = ("POST", ("dlq", "retry")) if verb == "retry" else ("DELETE", ("dlq",))

        async def work() -> int:
            if not chosen:
                query = {name: value or None for name, value in self.filter.items()}
                return int((await self.queen.admin.request(method, *path, query=query))["count"])
            count = 0
            for id_ in chosen:
                query = dict(zip(_IDENTITY, msgspec.json.decode(id_), strict=True))
                count += int((await self.queen.admin.request(method, *path, query=query))["count"])
            return count

        done = "Retrying" if verb == "retry" else "Deleted"
        if await act(work(), lambda count: f"{done} {plural(count, 'dead letter')}."):
            self.table.clear_selection()
            await self.live.refresh()


def _id(letter: dict[str, Any]) -> str:
    return msgspec.json.encode([letter[name] for name in _IDENTITY]).decode()


def _short(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else text[:60] + "…"
