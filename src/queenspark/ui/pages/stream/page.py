"""A stream: progress, timeline, tabs beside them, and the actions on the stream as a whole."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from ...frame import Frame, act
from ...parts import Tiles, button, confirm
from ...tabs import Tab, Tabs
from ...words import clock, duration, number, rate, shape
from .. import explanation
from ..records import Records
from . import definition
from .groups import Groups
from .timeline import TimelinePanel
from .window import WindowDrawer


def register() -> None:
    """Register the route."""
    ui.page("/stream")(_page)


async def _page(name: str, namespace: str = "default") -> None:
    await _StreamPage(name, namespace).build()


class _StreamPage:
    """One stream in one browser."""

    def __init__(self, name: str, namespace: str) -> None:
        self.name, self.namespace = name, namespace
        self.frame = Frame(name, "/streams", crumb=("Streams", "/streams"))
        self.queen = self.frame.session.queen
        self.stream = self.queen.stream(name, namespace)
        self.detail: dict[str, Any] = {}

    async def build(self) -> None:
        """Make the page."""
        with self.frame.actions:
            button("Redefine", self._redefine, right="stream:admin")
            button("Delete", self._delete, kind="bad", right="stream:admin")
        self.drawer = WindowDrawer(self.frame, self.stream, self._refresh)
        with self.frame.body:
            self.tiles = Tiles(
                ("Watermark", "Lag", "Open", "Sealed", "Late", "Dropped", "Dead records", "Records")
            )
            self.timeline = TimelinePanel(self.frame, self.stream, self.drawer.open)
            ui.element("div").style("height: 20px")
            self.tabs = Tabs(self.frame, self._tabs())
        self.live = await self.frame.live(self._key, lambda _: self.stream.describe(), self._show)
        await self.timeline.start()
        await self.tabs.start()

    @property
    def _key(self) -> tuple[str, ...]:
        return ("stream", self.namespace, self.name)

    def _tabs(self) -> tuple[Tab, ...]:
        def explain(_: Any) -> Any:
            path = ("resources", "streams", self.name, "explain")
            return self.queen.admin.request("GET", *path, query={"namespace": self.namespace})

        def late(limit: int, offset: int) -> Any:
            return self.stream.late_messages(limit=limit, offset=offset)

        def dead(limit: int, offset: int) -> Any:
            return self.stream.dead_messages(limit=limit, offset=offset)

        groups = Groups(self.queen, self._refresh)
        return (
            Tab("Groups", self._key, lambda _: self.stream.describe(), groups.build),
            Tab("Definition", (*self._key, "versions"), lambda _: self.stream.versions(), definition.build),
            Records("late", self._key, late, self._refresh_tab).tab,
            Records("dead", self._key, dead, self._refresh_tab).tab,
            Tab("Why no window?", (*self._key, "explain"), explain, explanation.build),
        )

    def _show(self, detail: dict[str, Any]) -> None:
        self.detail = detail
        sources = ", ".join(detail["sourceQueues"])
        self.frame.about.text = (
            f"{shape(detail)}, over {sources} · namespace {self.namespace} · version {detail['version']}"
        )
        progress = detail.get("progress") or {}
        show = self.tiles.show
        show("Watermark", clock(progress.get("watermark")))
        lag = progress.get("lagSeconds") or 0.0
        show("Lag", duration(lag), "", "warn" if lag > 30 else "")
        show("Open", number(progress.get("openWindows", 0)), "windows")
        show("Sealed", number(progress.get("sealedWindows", 0)), "windows")
        show("Late", number(progress.get("late", 0)))
        show("Dropped", number(progress.get("dropped", 0)), "", "warn" if progress.get("dropped") else "")
        show("Dead records", number(progress.get("dead", 0)), "", "bad" if progress.get("dead") else "")
        show("Records", rate((progress.get("rates") or {}).get("processedPerSecond")), "/s")
        self.timeline.describe(detail)

    async def _refresh(self) -> None:
        await self.live.refresh()
        await self.timeline.refresh()

    async def _refresh_tab(self) -> None:
        await self.tabs.refresh()

    async def _redefine(self) -> None:
        if not self.detail:
            ui.notify("The current definition is not loaded yet.", type="warning")
            return
        body = await definition.ask_definition(self.frame, self.name, self.detail)
        if body is None:
            return
        body |= {"name": self.name, "namespace": self.namespace}
        work = self.queen.admin.request("POST", "stream", "define", body=body)
        if await act(work, lambda found: f"Version {found['version']} is current."):
            await self.live.refresh()
            await self.tabs.refresh()

    async def _delete(self) -> None:
        text = "Its windows, groups and dead windows are deleted with it. The source queues stay."
        if await confirm(f"Delete the stream {self.name}?", text, "Delete") and await act(
            self.stream.delete(), f"Deleted {self.name}."
        ):
            ui.navigate.to("/streams")
