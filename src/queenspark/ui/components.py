"""Elements that are drawn in the browser: timeline, chart and table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nicegui.element import Element
from nicegui.events import GenericEventArguments

from .session import session

Cell = dict[str, Any]


class Timeline(Element, component="timeline.js"):
    """Windows as bars on one lane per key."""

    def __init__(
        self,
        *,
        on_pick: Callable[[Any], Any],
        on_range: Callable[[Any], Any],
        on_follow: Callable[[Any], Any],
    ) -> None:
        super().__init__()
        self.classes("qs-timeline")
        self.on("pick", lambda event: on_pick(event.args))
        self.on("range", lambda event: on_range(event.args))
        self.on("follow", lambda event: on_follow(event.args))

    def show(self, data: dict[str, Any]) -> None:
        """Show these windows."""
        self.run_method("show", data)

    def span(self, seconds: float) -> None:
        """Set how many seconds are shown."""
        self.run_method("setSpan", seconds * 1000)

    def follow(self, on: bool) -> None:
        """Follow the clock, or freeze."""
        self.run_method("setFollow", on)


class Chart(Element, component="chart.js"):
    """Lines over a common time axis."""

    def __init__(self, lines: Sequence[dict[str, str]], *, unit: str = "", height: int = 148) -> None:
        super().__init__()
        self.classes("qs-chart")
        self.props["lines"] = list(lines)
        self.props["unit"] = unit
        self.props["height"] = height

    def show(self, times: list[str], values: list[list[float]]) -> None:
        """Show these values, one list per line."""
        if self.props.get("times") != times:
            self.props["times"] = times
            self.props["values"] = values


class Table(Element, component="table.js"):
    """Rows with links, badges and numbers. The header sorts if `on_sort` is given."""

    def __init__(
        self,
        columns: Sequence[dict[str, Any]],
        *,
        empty: str = "Nothing yet.",
        on_sort: Callable[[str], Any] | None = None,
        on_action: Callable[[str, Any], Any] | None = None,
        selectable: bool = False,
        on_select: Callable[[], Any] = lambda: None,
    ) -> None:
        super().__init__()
        self.classes("qs-table")
        self.props["columns"] = list(columns)
        self.props["rows"] = None  # until the first response
        self.props["empty"] = empty
        self.props["selectable"] = selectable
        #: The ids of selected rows, also of those that are no longer shown.
        self.selected: list[Any] = []
        self._on_select = on_select
        if on_sort is not None:
            self.on("sort", lambda event: on_sort(event.args))
        if on_action is not None:
            self.on("action", lambda event: on_action(event.args["name"], event.args["id"]))
        self.on("selected", self._select)

    def _select(self, event: GenericEventArguments) -> None:
        self.selected = list(event.args)
        self._on_select()

    def clear_selection(self) -> None:
        """Select nothing."""
        self.selected = []
        self.run_method("clear")
        self._on_select()

    def show(self, rows: list[dict[str, Any]], sort: str | None = None) -> None:
        """Show these rows. A cell is a text, a number, or an object made by the functions below."""
        if self.props["rows"] != rows or self.props.get("sort") != sort:
            self.props["rows"] = rows
            self.props["sort"] = sort


def link(text: str, href: str, **more: Any) -> Cell:
    """A cell with a link."""
    return {"text": text, "href": href, **more}


def badge(text: str, tone: str = "calm", **more: Any) -> Cell:
    """A cell with a coloured badge."""
    return {"text": text, "tone": tone, **more}


def action(text: str, name: str, *, right: str | None = None, **more: Any) -> Cell:
    """A cell with a button, or with plain text and the reason if the user lacks the right."""
    if right is not None and not session().can(right):
        return {"text": text, "faint": True, "hint": session().lacks(right)}
    return {"text": text, "action": name, **more}
