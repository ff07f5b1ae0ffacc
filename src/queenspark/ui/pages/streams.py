"""All streams with their progress."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from ..components import link
from ..frame import Frame
from ..parts import Listing, field, stream_url
from ..words import clock, duration, number, rate, shape

_EXAMPLE = (
    """queen.stream("orders-by-minute").sources(["orders"]).partitioned().tumbling_time("1m").define()"""
)
_COLUMNS: list[dict[str, Any]] = [
    {"name": "name", "label": "Stream", "sort": True},
    {"name": "windows", "label": "Windows"},
    {"name": "watermark", "label": "Watermark", "align": "right", "sort": True},
    {"name": "lagSeconds", "label": "Lag", "align": "right", "sort": True},
    {"name": "openWindows", "label": "Open", "align": "right", "sort": True},
    {"name": "sealedWindows", "label": "Sealed", "align": "right", "sort": True},
    {"name": "late", "label": "Late", "align": "right", "sort": True},
    {"name": "dropped", "label": "Dropped", "align": "right", "sort": True},
    {"name": "dead", "label": "Dead", "align": "right", "sort": True},
    {"name": "rate", "label": "Records/s", "align": "right", "sort": True},
    {"name": "groups", "label": "Groups", "align": "right"},
]
_START = ("No streams yet", "Define one over your queues:", _EXAMPLE)


def register() -> None:
    """Register the route."""
    ui.page("/streams")(_page)


async def _page() -> None:
    frame = Frame("Streams", "/streams", "Windows over queues, sealed by the pipeline.")
    with frame.body:
        listing = Listing(_COLUMNS, sort="name", empty_text="No stream matches.", start=_START)
    with frame.actions:
        field("Search streams", on_change=listing.find)
    await frame.live_list(listing, "resources", "streams", name="streams", row=_row)


def _row(stream: dict[str, Any]) -> dict[str, Any]:
    progress = stream.get("progress") or {}
    rates = progress.get("rates") or {}
    return {
        "id": stream["id"],
        "name": link(
            stream["name"], stream_url(stream["name"], stream["namespace"]), sub=stream["namespace"]
        ),
        "windows": {"text": shape(stream), "sub": "over " + ", ".join(stream["sourceQueues"])},
        "watermark": clock(progress.get("watermark")),
        "lagSeconds": duration(progress.get("lagSeconds")),
        "openWindows": number(progress.get("openWindows")),
        "sealedWindows": number(progress.get("sealedWindows")),
        "late": number(progress.get("late")),
        "dropped": number(progress.get("dropped")),
        "dead": number(progress.get("dead")),
        "rate": rate(rates.get("processedPerSecond")),
        "groups": number(len(stream["consumerGroups"])),
    }
