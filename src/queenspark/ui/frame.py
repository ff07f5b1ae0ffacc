"""The frame of every page: navigation, errors, and live updates."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Hashable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from nicegui import ui

from .. import __version__
from ..client import QueenError
from .door import RIGHTS
from .feed import EVERY_SECONDS, Failed, Feed
from .parts import Listing, box, error_box
from .session import session
from .words import duration

log = logging.getLogger("queenspark.ui")

_FOLDER = Path(__file__).parent
_FIRST_SECONDS = 0.4  # a page is sent without the responses that take longer
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
_ACCESS = ("/keys", "/audit")  # only with access control
MARK = (
    '<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2.2" stroke-linejoin="round">'
    '<path d="M4 17.5 3 7l5 4 4-7 4 7 5-4-1 10.5z"/><path d="M5 21h14" stroke-linecap="round"/></svg>'
)
_IS_DARK = "document.body.classList.contains('body--dark')"
_SHOW_ITEM = "document.querySelector('.qs-nav .here')?.scrollIntoView({block: 'nearest', inline: 'center'})"
_VISIBLE = """<script>
document.addEventListener('visibilitychange', () => emitEvent('visible', !document.hidden));
</script>"""


class Live:
    """A part of a page that shows a feed; the feed can change while the page is open."""

    def __init__(self, feed: Callable[[], Feed], render: Callable[[Any], None]) -> None:
        self.feed = feed
        self._render = render
        self._shown: tuple[Feed, int] | None = None
        #: Why the value could not be rendered; None if it was.
        self.error: Failed | None = None

    def show(self) -> None:
        """Render the feed's value if it has changed."""
        feed = self.feed()
        if self._shown == (feed, feed.version):
            return
        self._shown = (feed, feed.version)
        if feed.value is not None and feed.error is None:
            try:
                self._render(feed.value)
            except Exception as error:  # the other parts of the page, and the banner, go on
                failed = Failed("The dashboard cannot show a part of this page", error)
                if str(failed) != str(self.error):
                    log.exception("cannot render a part of a page")
                self.error = failed
            else:
                self.error = None

    async def refresh(self) -> None:
        """Render the cached data, then fetch and render again."""
        self._shown = None
        self.show()
        await self.feed().refresh()
        self.show()


class Frame:
    """One page in one browser. Fill `body`, and register with `live` the parts that update."""

    def __init__(self, title: str, here: str, about: str = "", crumb: tuple[str, str] | None = None) -> None:
        self.session = session()
        self._lives: list[Live] = []
        self._is_visible = True
        self._painted_by = time.monotonic() + _FIRST_SECONDS
        self._has_left = False
        self._error_text = ""
        self._editors: list[ui.codemirror] = []
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
        ui.run_javascript(_SHOW_ITEM)
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
                    'flat round dense size=sm color=grey-6 aria-label="Toggle dark mode"'
                )

    def _user(self, me: dict[str, Any]) -> None:
        with box("qs-user"):
            with box("name").tooltip(", ".join(me["scopes"] or []) or "all names"):
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
        was_dark = await ui.run_javascript(_IS_DARK)
        self._mode.value = not was_dark
        theme = "light" if was_dark else "dark"
        ui.run_javascript(f"document.cookie = 'theme={theme}; path=/; max-age=31536000; samesite=lax'")
        self._colour_editors(not was_dark)

    def editor(self, text: str, language: Any, **options: Any) -> ui.codemirror:
        """A code editor in the page's colours."""
        made = ui.codemirror(text, language=language, **options)
        self._editors = [each for each in self._editors if not each.is_deleted] + [made]
        self._colour_editors(bool(self._mode.value))
        if self._mode.value is None:  # the browser decides, and can be asked when it is connected
            ui.timer(0.1, self._ask_colours, once=True)
        return made

    async def _ask_colours(self) -> None:
        self._colour_editors(bool(await ui.run_javascript(_IS_DARK)))

    def _colour_editors(self, is_dark: bool) -> None:
        for each in self._editors:
            each.theme = "vscodeDark" if is_dark else "vscodeLight"

    def _see(self, event: Any) -> None:
        self._is_visible = bool(event.args)
        if self._is_visible:
            self._tick()

    async def live(
        self,
        key: Hashable | Callable[[], Hashable],
        fetch: Callable[[Any], Awaitable[Any]],
        render: Callable[[Any], None],
        every: float = EVERY_SECONDS,
    ) -> Live:
        """Render a response now and whenever it changes.

        Pages with the same `key`, which `fetch` is called with, share one feed. Pass a function if the key
        changes while the page is open. A response that takes too long is rendered after the first paint, so
        `render` must not rely on being called before the page is sent.
        """

        def feed() -> Feed:
            current = key() if callable(key) else key
            return self.session.feeds.get(current, lambda: fetch(current), every)

        def render_in_body(value: Any) -> None:
            with self.body:
                render(value)

        live = Live(feed, render_in_body)
        self._lives.append(live)
        await feed().first(max(0.0, self._painted_by - time.monotonic()))
        live.show()
        self._tell()
        return live

    async def live_list(
        self,
        listing: Listing,
        *path: str,
        name: str,
        row: Callable[[dict[str, Any]], dict[str, Any]],
        every: float = EVERY_SECONDS,
    ) -> Live:
        """Show the current page of a list: the entries that a path of the API returns by a name, as rows."""
        queen = self.session.queen

        async def fetch(key: tuple[Any, ...]) -> Any:
            return await queen.admin.request("GET", *path, query=dict(key[1:]))

        def show(response: dict[str, Any]) -> None:
            listing.show([row(entry) for entry in response[name]], response["total"])

        live = await self.live(lambda: (name, *listing.query().items()), fetch, show, every)
        listing.on_change = live.refresh
        return live

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
            live.feed().watch()
            live.show()
        self._tell()

    def _tell(self) -> None:
        """Show whether the broker responds, and the first error."""
        feeds = [live.feed() for live in self._lives]
        gone = [feed.gone_since for feed in feeds if feed.gone_since is not None]
        if gone:
            self._banner_text.text = (
                f"The broker at {self.session.url} has not responded for {duration(time.time() - min(gone))}."
                " Retrying."
            )
        self._banner.set_visibility(bool(gone))
        errors: list[Exception] = [
            feed.error for feed in feeds if feed.error is not None and feed.gone_since is None
        ]
        errors += [live.error for live in self._lives if live.error is not None]
        text = str(errors[0]) if errors else ""
        if text != self._error_text:
            self._error_text = text
            self._error.clear()
            if text:
                with self._error:
                    error_box(text)


async def act(work: Awaitable[Any], done: str | Callable[[Any], str]) -> bool:
    """Run an action of the user and notify them of the result."""
    try:
        response = await work
    except QueenError as error:
        ui.notify(str(error), type="negative", multi_line=True, timeout=8000, close_button="Close")
        return False
    ui.notify(done if isinstance(done, str) else done(response), type="positive")
    return True


STYLE = (_FOLDER / "style.css").read_text()
