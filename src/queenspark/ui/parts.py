"""Small things that pages are made of."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal
from urllib.parse import urlencode

from nicegui import ui
from nicegui.element import Element

from ..client import QueenError
from .components import Table
from .session import session
from .words import number

PAGE_ROWS = 25


def box(classes: str = "") -> Element:
    """A plain div."""
    return ui.element("div").classes(classes)


def panel(title: str = "", *, flush: bool = False, about: str = "") -> Element:
    """A panel with a title; returns what to fill."""
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
) -> Element:
    """A button, disabled for a user who lacks a right, with the reason."""
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
    """A line to type into; `on_change` hears of it when somebody stops typing."""
    found = ui.input(placeholder=label, value=value).props(
        f'outlined dense debounce=300 aria-label="{label}"'
    )
    found.classes("qs-field")
    if on_change is not None:
        found.on_value_change(lambda event: on_change(event.value or ""))
    return found


def facts(pairs: Sequence[tuple[str, str]]) -> None:
    """Names and values below each other."""
    with ui.element("dl").classes("qs-facts"):
        for name, value in pairs:
            with ui.element("dt"):
                ui.label(name)
            with ui.element("dd"):
                ui.label(value)


def code(text: str) -> None:
    """Text as it is."""
    with ui.element("pre").classes("qs-code mono"):
        ui.label(text)


def empty(title: str, text: str, example: str = "") -> None:
    """What to do next where there is nothing yet."""
    with box("qs-panel"), box("qs-empty"):
        with ui.element("h2"):
            ui.label(title)
        ui.label(text)
        if example:
            code(example)


def error_box(text: str) -> None:
    """Why something cannot be shown."""
    with box("qs-error").props('role="alert"'):
        ui.label(text)


class Tiles:
    """A few numbers side by side."""

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
        """Show none of them."""
        self._box.set_visibility(False)

    def show(self, name: str, value: str, unit: str = "", tone: str = "") -> None:
        """Show a value."""
        tile, shown = self._tiles[name]
        shown.set_content(f"<b>{_escaped(value)}<i>{_escaped(unit)}</i></b>")
        tile.classes(replace=f"qs-tile {tone}".strip())


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


class Segments:
    """One of a few choices."""

    def __init__(
        self, choices: dict[Any, str], value: Any, on_change: Callable[[Any], Any], name: str
    ) -> None:
        self.value = value
        self._on_change = on_change
        self._box = box("qs-seg").props(f'role="group" aria-label="{name}"')
        self._buttons: dict[Any, Element] = {}
        self.offer(choices)

    def offer(self, choices: dict[Any, str]) -> None:
        """Change the choices."""
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
        """Show which one is chosen."""
        self.value = value
        for each, made in self._buttons.items():
            made.classes(add="on") if each == value else made.classes(remove="on")
            made.props(f"aria-pressed={'true' if each == value else 'false'}")


def tabs(names: Sequence[str], render: Callable[[str], Any]) -> Callable[[], Any]:
    """Tabs above a room that `render` fills; returns how to fill it again."""
    chosen = {"name": names[0]}
    bar = box("qs-tabs").props('role="tablist"')
    room = box()
    buttons: dict[str, Element] = {}

    async def show(name: str) -> None:
        chosen["name"] = name
        for each, made in buttons.items():
            made.classes(add="on") if each == name else made.classes(remove="on")
            made.props(f"aria-selected={'true' if each == name else 'false'}")
        room.clear()
        with room:
            try:
                result = render(name)
                if isinstance(result, Awaitable):
                    await result
            except QueenError as error:
                error_box(str(error))

    with bar:
        for name in names:
            buttons[name] = (
                ui.element("button").props('role="tab"').on("click", lambda _, name=name: show(name))
            )
            with buttons[name]:
                ui.label(name)
    return lambda: show(chosen["name"])


async def confirm(title: str, text: str, verb: str, *, bad: bool = True) -> bool:
    """Ask before something is changed."""
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


class Listing:
    """A table with a search field and pages. `load` is called when one of them changes."""

    def __init__(
        self,
        columns: Sequence[dict[str, Any]],
        *,
        sort: str,
        empty_text: str,
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

    def query(self) -> dict[str, Any]:
        """As parameters of a list of the API."""
        return {"limit": self.limit, "offset": self.offset, "sort": self.sort, "search": self.search or None}

    def show(self, rows: list[dict[str, Any]], total: int) -> None:
        """Show a page."""
        self.total = total
        self.table.show(rows, self.sort)
        self._pager.set_visibility(total > self.limit)
        last = min(self.offset + self.limit, total)
        self._where.text = f"{number(self.offset + 1)}–{number(last)} of {number(total)}"

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
    """A page of the dashboard."""
    given = {name: value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def stream_url(name: str, namespace: str) -> str:
    """The page of a stream."""
    return url("/stream", namespace=namespace, name=name)


def queue_url(queue: str) -> str:
    """The page of a queue; that of its stream for a window queue."""
    if queue.startswith("windows:") and "/" in queue:
        namespace, _, name = queue.removeprefix("windows:").partition("/")
        return stream_url(name, namespace.replace("%2F", "/").replace("%25", "%"))
    return url("/queue", name=queue)


def queue_name(queue: str) -> str:
    """A queue as people call it: a window queue by its stream."""
    if queue.startswith("windows:") and "/" in queue:
        return queue.rpartition("/")[2]
    return queue


def tone_of(state: str) -> str:
    """The colour of a state."""
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
