"""Building blocks of pages: panels, buttons, fields, tiles, lists and links."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal
from urllib.parse import urlencode

from nicegui import ui
from nicegui.element import Element

from .components import Table
from .session import session
from .words import number

PAGE_ROWS = 25


def box(classes: str = "") -> Element:
    """A plain div."""
    return ui.element("div").classes(classes)


def panel(title: str = "", *, flush: bool = False, about: str = "") -> Element:
    """A panel with a title, to be filled."""
    found = ui.element("section").classes("qs-panel flush" if flush else "qs-panel")
    if title:
        with found, box("qs-title"):
            ui.label(title)
            if about:
                with ui.element("small"):
                    ui.label(about)
    return found


def button(
    text: str,
    on_click: Callable[[], Any],
    *,
    kind: Literal["", "main", "bad", "main bad"] = "",
    right: str | None = None,
) -> ui.button:
    """A button, disabled with a reason if the user lacks the right."""
    made = (
        ui.button(text, on_click=on_click, color=None)
        .props("unelevated no-caps")
        .classes(f"qs-button {kind}")
    )
    if right is not None and not session().can(right):
        made.disable()
        made.props["title"] = session().lacks(right)
    return made


def field(label: str, value: str = "", *, on_change: Callable[[str], Any] | None = None) -> ui.input:
    """A text field. `on_change` is called when the user stops typing."""
    found = ui.input(placeholder=label, value=value).props(
        f'outlined dense debounce=300 aria-label="{label}"'
    )
    found.classes("qs-field")
    if on_change is not None:
        found.on_value_change(lambda event: on_change(event.value or ""))
    return found


def facts(pairs: Sequence[tuple[str, str]]) -> None:
    """A list of names and values."""
    with ui.element("dl").classes("qs-facts"):
        for name, value in pairs:
            with ui.element("dt"):
                ui.label(name)
            with ui.element("dd"):
                ui.label(value)


def code(text: str) -> None:
    """Preformatted text."""
    with ui.element("pre").classes("qs-code mono"):
        ui.label(text)


def empty(title: str, text: str, example: str = "") -> None:
    """An empty state that says what to do next."""
    with box("qs-panel"), box("qs-empty"):
        with ui.element("h2"):
            ui.label(title)
        ui.label(text)
        if example:
            code(example)


def error_box(text: str) -> None:
    """An error message."""
    with box("qs-error").props('role="alert"'):
        ui.label(text)


class Tiles:
    """A row of figures."""

    def __init__(self, names: Sequence[str]) -> None:
        self._tiles = {}
        self._box = box("qs-tiles")
        with self._box:
            for name in names:
                tile = box("qs-tile")
                with tile:
                    value = ui.html("<b>–</b>", sanitize=False)
                    with ui.element("span"):
                        ui.label(name)
                self._tiles[name] = (tile, value)

    def hide(self) -> None:
        """Hide them all."""
        self._box.set_visibility(False)

    def show(self, name: str, value: str, unit: str = "", tone: str = "") -> None:
        """Set a value."""
        tile, shown = self._tiles[name]
        shown.set_content(f"<b>{_escaped(value)}<i>{_escaped(unit)}</i></b>")
        tile.classes(replace=f"qs-tile {tone}".strip())


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


class Segments:
    """A group of buttons with one selected."""

    def __init__(
        self, choices: dict[Any, str], value: Any, on_change: Callable[[Any], Any], name: str
    ) -> None:
        self.value = value
        self._on_change = on_change
        self._box = box("qs-seg").props(f'role="group" aria-label="{name}"')
        self._buttons: dict[Any, Element] = {}
        self.offer(choices)

    def offer(self, choices: dict[Any, str]) -> None:
        """Replace the choices."""
        if list(self._buttons) == list(choices):
            return
        self._box.clear()
        self._buttons = {}
        with self._box:
            for value, text in choices.items():
                made = ui.element("button").on("click", lambda _, value=value: self.choose(value))
                with made:
                    ui.label(text)
                self._buttons[value] = made
        self.mark(self.value)

    def choose(self, value: Any) -> Any:
        """Choose one, as a click does."""
        self.mark(value)
        return self._on_change(value)

    def mark(self, value: Any) -> None:
        """Mark one as chosen without calling `on_change`."""
        self.value = value
        for each, made in self._buttons.items():
            made.classes(add="on") if each == value else made.classes(remove="on")
            made.props(f"aria-pressed={'true' if each == value else 'false'}")


async def confirm(title: str, text: str, verb: str, *, bad: bool = True) -> bool:
    """Ask the user to confirm."""
    with ui.dialog() as dialog, ui.card().classes("qs-dialog"):
        with ui.element("h2"):
            ui.label(title)
        with ui.element("p"):
            ui.label(text)
        with box("row"):
            button("Cancel", lambda: dialog.submit(False))
            button(verb, lambda: dialog.submit(True), kind="main bad" if bad else "main")
    answer = await dialog
    dialog.delete()
    return bool(answer)


class Pager:
    """Turns the pages of a list whose length is unknown: each page is read with one more row.

    The list is newest first, or sorted by name. `on_turn` is called after a turn.
    """

    def __init__(self, on_turn: Callable[[], Awaitable[None]], *, by_name: bool = False) -> None:
        self.offset = 0
        self._order = "by name" if by_name else "newest first"
        self._on_turn = on_turn
        self._has_more = False
        with box("qs-pager") as self._box:
            self._where = ui.label()
            button("‹ Back" if by_name else "‹ Newer", lambda: self._turn(-1))
            button("Next ›" if by_name else "Older ›", lambda: self._turn(1))
        self._box.set_visibility(False)

    def show(self, found: int) -> None:
        """Show where the page is, given the number of rows that were read for it."""
        self._has_more = found > PAGE_ROWS
        self._box.set_visibility(self._has_more or self.offset > 0)
        last = self.offset + min(found, PAGE_ROWS)
        self._where.text = f"{number(self.offset + 1)}–{number(last)}, {self._order}" if found else ""

    async def _turn(self, by: int) -> None:
        offset = self.offset + by * PAGE_ROWS
        if offset >= 0 and (by < 0 or self._has_more):
            self.offset = offset
            await self._on_turn()


class Listing:
    """A table with sorting, search and pages. `on_change` is called when one of them changes.

    While there is nothing to list, `start` is shown instead: the arguments of `empty`.
    """

    def __init__(
        self,
        columns: Sequence[dict[str, Any]],
        *,
        sort: str,
        empty_text: str,
        start: tuple[str, str, str] | None = None,
        on_action: Callable[[str, Any], Any] | None = None,
        selectable: bool = False,
        rows: int = PAGE_ROWS,
    ) -> None:
        self.search = ""
        self.sort = sort
        self.offset = 0
        self.limit = rows
        self.total = 0
        self.on_change: Callable[[], Any] = lambda: None
        with panel(flush=True) as self.panel:
            self.table = Table(
                columns, empty=empty_text, on_sort=self._sorted, on_action=on_action, selectable=selectable
            )
            with box("qs-pager") as self._pager:
                self._where = ui.label()
                button("‹ Back", lambda: self._turn(-1))
                button("Next ›", lambda: self._turn(1))
        self._start: ui.element | None = None
        if start is not None:
            with ui.element("div") as self._start:
                empty(*start)
            self._start.set_visibility(False)

    def query(self) -> dict[str, Any]:
        """Return the query parameters of the API."""
        return {"limit": self.limit, "offset": self.offset, "sort": self.sort, "search": self.search or None}

    def show(self, rows: list[dict[str, Any]], total: int) -> None:
        """Show a page."""
        self.total = total
        self.table.show(rows, self.sort)
        self._pager.set_visibility(total > self.limit)
        last = min(self.offset + self.limit, total)
        self._where.text = f"{number(self.offset + 1)}–{number(last)} of {number(total)}"
        if self._start is not None:
            is_empty = total == 0 and not self.search
            self._start.set_visibility(is_empty)
            self.panel.set_visibility(not is_empty)

    def find(self, text: str) -> Any:
        """Search."""
        self.search, self.offset = text, 0
        return self.on_change()

    def _sorted(self, name: str) -> Any:
        self.sort = name if self.sort == f"-{name}" else f"-{name}" if self.sort == name else name
        self.offset = 0
        return self.on_change()

    def _turn(self, by: int) -> Any:
        offset = self.offset + by * self.limit
        if 0 <= offset < max(1, self.total):
            self.offset = offset
            return self.on_change()
        return None


def url(path: str, **query: Any) -> str:
    """Return the URL of a page of the dashboard."""
    given = {name: value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def stream_url(name: str, namespace: str) -> str:
    """Return the URL of a stream's page."""
    return url("/stream", namespace=namespace, name=name)


def stream_of(queue: str) -> tuple[str, str] | None:
    """Return the namespace and name of the stream of a window queue, or None for another queue."""
    if not (queue.startswith("windows:") and "/" in queue):
        return None
    namespace, _, name = queue.removeprefix("windows:").partition("/")
    return namespace.replace("%2F", "/").replace("%25", "%"), name


def queue_url(queue: str) -> str:
    """Return the URL of a queue's page; for a window queue, that of its stream."""
    stream = stream_of(queue)
    return url("/queue", name=queue) if stream is None else stream_url(stream[1], stream[0])


def queue_name(queue: str) -> str:
    """Return the name to show for a queue; for a window queue, that of its stream."""
    stream = stream_of(queue)
    return queue if stream is None else stream[1]


def tone_of(state: str) -> str:
    """Return the tone of a state."""
    return {
        "running": "good",
        "paused": "wait",
        "failed": "bad",
        "finished": "calm",
        "acked": "good",
        "completed": "good",
        "waiting": "wait",
        "pending": "wait",
        "leased": "accent",
        "processing": "accent",
        "retrying": "warn",
        "dead": "bad",
        "dead_letter": "bad",
        "skipped": "calm",
    }.get(state, "calm")
