"""What every page has: the way to the others, the banner of a broker that is away, and what keeps it live."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Hashable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from nicegui import ui

from .. import __version__
from ..client import QueenError
from .door import RIGHTS
from .feed import EVERY_SECONDS, Feed
from .parts import box, error_box
from .session import session
from .words import duration

_FOLDER = Path(__file__).parent
_FIRST_SECONDS = 0.4  # that a page waits for its answers before it is painted without them
_PAGES = (
    ("/", "Overview", "space_dashboard"),
    ("/streams", "Streams", "view_timeline"),
    ("/queues", "Queues", "inbox"),
    ("/groups", "Groups", "groups"),
    ("/dead-letters", "Dead letters", "report_off"),
    ("/jobs", "Jobs", "account_tree"),
    ("/sql", "SQL", "terminal"),
    ("/system", "System", "dns"),
    ("/keys", "API keys", "key"),
    ("/audit", "Audit log", "history"),
)
_ACCESS = ("/keys", "/audit")  # of no use where everybody may do everything
MARK = (
    '<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2.2" stroke-linejoin="round">'
    '<path d="M4 17.5 3 7l5 4 4-7 4 7 5-4-1 10.5z"/><path d="M5 21h14" stroke-linecap="round"/></svg>'
)
_VISIBLE = """<script>
document.addEventListener('visibilitychange', () => emitEvent('visible', !document.hidden));
</script>"""


class _Live(NamedTuple):
    feed: Callable[[], Feed]
    render: Callable[[Any], None]
    state: dict[str, int]


class Frame:
    """One page in one browser. Fill `body`, and say with `live` what is renewed."""

    def __init__(self, title: str, here: str, about: str = "", crumb: tuple[str, str] | None = None) -> None:
        self.session = session()
        self._lives: list[_Live] = []
        self._is_visible = True
        self._painted_by = time.monotonic() + _FIRST_SECONDS
        self._has_left = False
        url = ui.context.client.request.url
        self._here = url.path + (f"?{url.query}" if url.query else "")
        ui.page_title(f"{title} · Queenspark")
        ui.add_head_html(_VISIBLE)
        ui.add_css(STYLE)
        ui.colors(primary="#c98a0c", negative="#c9432f", positive="#4f9d7a")
        self._dark()
        with box("qs-frame"):
            self._navigation(here)
            with ui.element("main").classes("qs-main"):
                self._banner = box("qs-banner")
                self._banner.props('role="alert"')
                with self._banner:
                    ui.icon("cloud_off").style("font-size: 18px")
                    self._banner_text = ui.label()
                self._banner.set_visibility(False)
                with box("qs-head"):
                    with box():
                        if crumb is not None:
                            with box("qs-crumb"):
                                ui.link(crumb[0], crumb[1])
                        with ui.element("h1"):
                            ui.label(title)
                        with ui.element("p"):
                            self.about = ui.label(about)
                    self.actions = box("right")
                self._error = box("qs-errors")
                self.body = box("qs-body")
        ui.on("visible", self._see)
        ui.timer(EVERY_SECONDS, self._tick, immediate=False)

    def _navigation(self, here: str) -> None:
        with ui.element("nav").classes("qs-nav").props('aria-label="Pages"'):
            with ui.link(target="/").classes("qs-brand").props('aria-label="Queenspark"'):
                ui.html(MARK, sanitize=False)
                ui.html("<span>Queenspark</span>", sanitize=False)
            for path, name, icon in _PAGES:
                if path in _ACCESS and self.session.me is None:
                    continue
                if not self.session.can(RIGHTS.get(path, "known")):
                    continue
                item = ui.link(target=path).classes("item")
                if path == here:
                    item.classes("here").props('aria-current="page"')
                with item:
                    ui.icon(icon)
                    ui.label(name)
            box("gap")
            if self.session.me is not None:
                self._user(self.session.me)
            with box("foot"):
                ui.html(f"<span>{__version__}</span>", sanitize=False)
                ui.button(icon="contrast", on_click=self._toggle).props(
                    'flat round dense size=sm color=grey-6 aria-label="Light or dark"'
                )

    def _user(self, me: dict[str, Any]) -> None:
        with box("qs-user"):
            with box("name").tooltip(", ".join(me["scopes"] or []) or "every name"):
                ui.label(me["name"])
                with ui.element("small"):
                    ui.label(me["role"] or "scopes")
            with (
                ui.element("form").props('method="post" action="/logout"'),
                ui.element("button").props('type="submit"').classes("qs-link"),
            ):
                ui.label("Log out")

    def _dark(self) -> None:
        request = ui.context.client.request
        chosen = {"dark": True, "light": False}.get(request.cookies.get("theme", "") if request else "")
        self._mode = ui.dark_mode(chosen)

    async def _toggle(self) -> None:
        was_dark = await ui.run_javascript("document.body.classList.contains('body--dark')")
        self._mode.value = not was_dark
        theme = "light" if was_dark else "dark"
        ui.run_javascript(f"document.cookie = 'theme={theme}; path=/; max-age=31536000; samesite=lax'")

    def _see(self, event: Any) -> None:
        self._is_visible = bool(event.args)
        if self._is_visible:
            self._tick()

    async def live(
        self,
        question: Hashable | Callable[[], Hashable],
        fetch: Callable[[Any], Awaitable[Any]],
        render: Callable[[Any], None],
        every: float = EVERY_SECONDS,
    ) -> Callable[[], Awaitable[None]]:
        """Show an answer now and whenever it changes; returns how to ask again at once.

        People who ask the same `question`, which `fetch` gets, share the answer. It may be a function, when
        what the page asks for changes while it is open.
        """

        def feed() -> Feed:
            asked = question() if callable(question) else question
            return self.session.feeds.get(asked, lambda: fetch(asked), every)

        live = _Live(feed, render, {"feed": 0, "version": -1})
        self._lives.append(live)
        await feed().first(max(0.0, self._painted_by - time.monotonic()))
        self._show(live)
        self._tell()

        async def again() -> None:
            await feed().again()
            self._show(live)

        return again

    def _tick(self) -> None:
        if self.session.ended is not None:
            if not self._has_left:
                self._has_left = True
                ui.navigate.to(f"/login?reason={self.session.ended}&next={quote(self._here, safe='')}")
            return
        if not self._is_visible:
            return
        self.session.touch()
        for live in self._lives:
            live.feed().look()
            self._show(live)
        self._tell()

    def _show(self, live: _Live) -> None:
        feed = live.feed()
        if (id(feed), feed.version) == (live.state["feed"], live.state["version"]):
            return
        live.state.update(feed=id(feed), version=feed.version)
        if feed.value is not None and feed.error is None:
            with self.body:
                live.render(feed.value)

    def _tell(self) -> None:
        """Say which broker is away, and what it refuses."""
        feeds = [live.feed() for live in self._lives]
        gone = [feed.gone_since for feed in feeds if feed.gone_since is not None]
        if gone:
            text = f"The broker at {self.session.url} does not answer. Trying again, since"
            self._banner_text.text = f"{text} {duration(time.time() - min(gone))}."
        self._banner.set_visibility(bool(gone))
        errors = [feed.error for feed in feeds if feed.error is not None and feed.gone_since is None]
        said = str(errors[0]) if errors else ""
        if said != getattr(self, "_said", ""):
            self._said = said
            self._error.clear()
            if said:
                with self._error:
                    error_box(said)


async def act(work: Awaitable[Any], done: str | Callable[[Any], str]) -> bool:
    """Do something that somebody asked for, and say how it went."""
    try:
        answer = await work
    except QueenError as error:
        ui.notify(str(error), type="negative", multi_line=True, timeout=8000, close_button="Close")
        return False
    ui.notify(done if isinstance(done, str) else done(answer), type="positive")
    return True


STYLE = (_FOLDER / "style.css").read_text()
