"""The groups of a stream: progress, seek, and their dead windows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ....client import AsyncQueen
from ...components import Table, action, link
from ...frame import act
from ...parts import confirm, panel, url
from ...seek import ask_position, seek
from ...words import ago, number, plural, rate

_COLUMNS = [
    {"name": "name", "label": "Group"},
    {"name": "poppedPerSecond", "label": "Popped/s", "align": "right"},
    {"name": "ackedPerSecond", "label": "Acked/s", "align": "right"},
    {"name": "lag", "label": "Lag", "align": "right"},
    {"name": "processing", "label": "In flight", "align": "right"},
    {"name": "oldest", "label": "Oldest unacked", "align": "right"},
    {"name": "acked", "label": "Last ack", "align": "right"},
    {"name": "act", "label": "", "align": "right"},
]


class Groups:
    """The table of groups and its actions."""

    def __init__(self, queen: AsyncQueen, after: Callable[[], Awaitable[None]]) -> None:
        self._queen = queen
        self._after = after
        self._queue = ""

    def build(self) -> Callable[[dict[str, Any]], None]:
        """Make the table and return the function that fills it from a described stream."""
        with panel(flush=True):
            table = Table(
                _COLUMNS,
                empty="No group has polled this stream yet: queen.consumer(stream, group).process(…)",
                on_action=self._act,
            )

        def show(detail: dict[str, Any]) -> None:
            self._queue = detail["windowQueue"]
            table.show([_row(group) for group in detail["groups"]])

        return show

    async def _act(self, name: str, group: str) -> None:
        match name:
            case "seek":
                await self._seek(group)
            case "retry":
                await self._retry_dead(group)
            case _:
                await self._delete_dead(group)
        await self._after()

    async def _seek(self, group: str) -> None:
        where = await ask_position(
            f"Seek group {group}",
            "The group gets all windows that end after this point, including those it has already had."
            " Leases are revoked.",
        )
        if where is not None:
            await act(seek(self._queen, self._queue, group, where), f"{group} continues from {where}.")

    async def _retry_dead(self, group: str) -> None:
        title = f"Retry the dead windows of {group}?"
        if await confirm(title, "They will be redelivered to the group.", "Retry", bad=False):
            query = {"queue": self._queue, "consumerGroup": group}
            work = self._queen.admin.request("POST", "dlq", "retry", query=query)
            await act(work, lambda response: f"Retrying {plural(response['count'], 'window')}.")

    async def _delete_dead(self, group: str) -> None:
        title = f"Delete the dead windows of {group}?"
        if await confirm(title, "They will not be redelivered.", "Delete"):
            query = {"queue": self._queue, "consumerGroup": group}
            work = self._queen.admin.request("DELETE", "dlq", query=query)
            await act(work, lambda response: f"Deleted {plural(response['count'], 'dead window')}.")


def _row(group: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": group["name"],
        "name": link(group["name"], url("/group", name=group["name"])),
        **{name: rate(value) for name, value in group["rates"].items()},
        "lag": number(group["lag"]),
        "processing": number(group["processing"]),
        "oldest": ago(group["oldestUnackedAt"]) if group["oldestUnackedAt"] else "–",
        "acked": ago(group["lastAckedAt"]),
        "act": [
            action("Seek…", "seek", right="stream:admin"),
            action("Retry dead", "retry", right="queue:admin"),
            action("Delete dead", "delete", tone="bad", right="queue:admin"),
        ],
    }
