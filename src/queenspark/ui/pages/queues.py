"""All queues with their counts."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from ..components import link
from ..frame import Frame
from ..parts import Listing, field, url
from ..words import ago, number, rate

_COLUMNS: list[dict[str, Any]] = [
    {"name": "name", "label": "Queue", "sort": True},
    {"name": "messages", "label": "Messages", "align": "right", "sort": True},
    {"name": "pending", "label": "Pending", "align": "right", "sort": True},
    {"name": "processing", "label": "In flight", "align": "right", "sort": True},
    {"name": "pushedPerSecond", "label": "Pushed/s", "align": "right", "sort": True},
    {"name": "poppedPerSecond", "label": "Popped/s", "align": "right", "sort": True},
    {"name": "ackedPerSecond", "label": "Acked/s", "align": "right", "sort": True},
    {"name": "partitions", "label": "Partitions", "align": "right", "sort": True},
    {"name": "priority", "label": "Priority", "align": "right", "sort": True},
    {"name": "createdAt", "label": "Created", "align": "right", "sort": True},
]
_START = ("No queues yet", "The first push creates one:", """queenspark push hello '{"n": 1}'""")


def register() -> None:
    """Register the route."""
    ui.page("/queues")(_page)


async def _page() -> None:
    frame = Frame("Queues", "/queues", "Append-only logs of messages, in partitions.")
    with frame.body:
        listing = Listing(_COLUMNS, sort="name", empty_text="No queue matches.", start=_START)
    with frame.actions:
        field("Search queues", on_change=listing.find)
    await frame.live_list(listing, "resources", "queues", name="queues", row=_row)


def _row(queue: dict[str, Any]) -> dict[str, Any]:
    counts = queue["messages"]
    about = " · ".join(text for text in (queue["namespace"], queue["task"]) if text)
    share = counts["pending"] / counts["total"] if counts["total"] else 0
    return {
        "id": queue["id"],
        "name": link(queue["name"], url("/queue", name=queue["name"]), sub=about),
        "messages": number(counts["total"]),
        "pending": {"text": number(counts["pending"]), "bar": share},
        "processing": number(counts["processing"]),
        **{name: rate(value) for name, value in queue["rates"].items()},
        "partitions": number(queue["partitions"]),
        "priority": number(queue["priority"]),
        "createdAt": ago(queue["createdAt"]),
    }
