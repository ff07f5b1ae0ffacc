"""Tabs: one room on a page, filled by the tab that is selected and kept up to date."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any, NamedTuple

from nicegui import ui
from nicegui.element import Element

from .frame import Frame, Live
from .parts import box

_EVERY_SECONDS = 2.0

Show = Callable[[Any], None]


class Tab(NamedTuple):
    """A tab. `build` makes its elements, before any response, and returns the function that shows one.

    `key` and `fetch` are those of `Frame.live`.
    """

    name: str
    key: Hashable | Callable[[], Hashable]
    fetch: Callable[[Any], Awaitable[Any]]
    build: Callable[[], Show]


class Tabs:
    """A bar of tabs above a room."""

    def __init__(self, frame: Frame, tabs: Sequence[Tab]) -> None:
        self._frame = frame
        self._fetches: dict[Hashable, Callable[[Any], Awaitable[Any]]] = {}
        self._selected = tabs[0]
        self._live: Live | None = None
        self._buttons: dict[str, Element] = {}
        with box("qs-tabs").props('role="tablist"'):
            for tab in tabs:
                made = ui.element("button").props('role="tab"')
                made.on("click", lambda _, tab=tab: self.select(tab))
                self._buttons[tab.name] = made
                with made:
                    ui.label(tab.name)
        self._room = box().props('role="tabpanel"')
        self._show = self._build()

    async def start(self) -> None:
        """Show the first tab, and keep the selected one up to date."""
        self._live = await self._frame.live(
            self._key,
            lambda key: self._fetches[key](key),
            self._render,
            _EVERY_SECONDS,
        )

    async def select(self, tab: Tab) -> None:
        """Show a tab, as a click on it does."""
        self._selected = tab
        self._show = self._build()
        await self.refresh()

    async def refresh(self) -> None:
        """Refresh the selected tab."""
        if self._live is not None:
            await self._live.refresh()

    def _key(self) -> Hashable:
        tab = self._selected
        key = tab.key() if callable(tab.key) else tab.key
        self._fetches[key] = tab.fetch
        return key

    def _render(self, value: Any) -> None:
        self._show(value)

    def _build(self) -> Show:
        for name, made in self._buttons.items():
            is_selected = name == self._selected.name
            made.classes(add="on") if is_selected else made.classes(remove="on")
            made.props(f"aria-selected={'true' if is_selected else 'false'}")
        self._room.clear()
        with self._room:
            return self._selected.build()
