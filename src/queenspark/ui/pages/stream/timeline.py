"""The timeline of a stream: its windows as bars, the controls around them, and the requests behind them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from nicegui import ui

from ....client import AsyncStream
from ...components import Timeline
from ...frame import Frame, Live
from ...parts import Segments, box, button, field, panel
from ...words import number, plural

_SPANS = {120: "2 min", 300: "5 min", 900: "15 min", 3600: "1 h", 21600: "6 h"}
_DEFAULT_SPAN = 300
_LANES = 20
_WINDOWS_PER_KEY = 300
_MOST_GROUPS = 6  # as buttons; more are a list
_LEGEND = {
    "open": "open",
    "waiting": "sealed, waiting",
    "leased": "leased",
    "acked": "acked",
    "retrying": "failed, will be retried",
    "dead": "dead",
    "late": "late revision",
    "skipped": "skipped",
}
_OF_RECORDS = ("count", "rows")
_NOT_DRAWN = "only the pipeline knows where a count window starts"
_WORST_FIRST = ("dead", "retrying", "leased", "waiting", "acked", "skipped")

OnPick = Callable[[dict[str, Any], dict[str, Any] | None, str | None], Awaitable[None]]


class TimelinePanel:
    """The timeline and its controls. `on_pick` gets a bar, its window if it is sealed, and the group."""

    def __init__(self, frame: Frame, stream: AsyncStream, on_pick: OnPick) -> None:
        self._frame = frame
        self._stream = stream
        self._on_pick = on_pick
        self._group: str | None = None
        self._search = ""
        self._offset = 0
        self._range: tuple[int, int] | None = None
        self._windows: dict[str, dict[str, Any]] = {}
        self._total_keys = 0
        self._counts_records = False
        self._live: Live | None = None
        with panel(flush=True):
            self._controls()
            self._timeline = Timeline(on_pick=self._pick, on_range=self._move, on_follow=self._followed)
            with box("qs-pager") as self._pager:
                self._pager_text = ui.label()
                button("‹ Busier keys", lambda: self._turn(-1))
                button("More keys ›", lambda: self._turn(1))
            self._pager.set_visibility(False)
            with box("qs-key"):
                for state, text in _LEGEND.items():
                    with ui.element("span"):
                        ui.element("i").classes(state)
                        ui.label(text)

    def _controls(self) -> None:
        with box("qs-title"):
            ui.label("Timeline")
            with ui.element("small"):
                self._about = ui.label()
            with box("right"):
                field("Search keys", on_change=self._find).style("width: 150px")
                self._groups = Segments({}, None, self._choose_group, "Group")
                self._group_list = ui.select([], on_change=lambda event: self._choose_group(event.value))
                self._group_list.props('outlined dense options-dense aria-label="Group"').classes("qs-field")
                self._spans = Segments(_SPANS, _DEFAULT_SPAN, self._choose_span, "Time range")
                self._following = Segments(
                    {True: "Follow", False: "Freeze"}, True, self._follow, "Follow the clock"
                )

    async def start(self) -> None:
        """Show the windows and keep them up to date."""
        self._live = await self._frame.live(self._key, self._fetch, self._show)

    async def refresh(self) -> None:
        """Fetch the windows again."""
        if self._live is not None:
            await self._live.refresh()

    def describe(self, detail: dict[str, Any]) -> None:
        """Take the kind of windows and the groups of a stream; unless one is chosen, the first one is."""
        self._counts_records = detail["windowType"] in _OF_RECORDS
        names = [group["name"] for group in detail["groups"]]
        if self._group not in names:
            self._group = names[0] if names else None
        are_many = len(names) > _MOST_GROUPS
        self._groups.offer({} if are_many else {name: name for name in names})
        self._groups.mark(self._group)
        self._group_list.set_visibility(are_many)
        if are_many and self._group_list.options != names:
            self._group_list.set_options(names, value=self._group)

    def _key(self) -> tuple[Any, ...]:
        return ("timeline", *self._name, self._group, self._search, self._offset, self._asked_range())

    @property
    def _name(self) -> tuple[str, str]:
        return self._stream.namespace, self._stream.name

    def _asked_range(self) -> tuple[int, int | None]:
        """The first and last second to fetch, rounded so that viewers of about the same time share a feed."""
        if self._range is None or self._following.value:
            if self._range is None:
                span = int(self._spans.value or _DEFAULT_SPAN)
            else:
                span = (self._range[1] - self._range[0]) // 1000
            step = max(5, span // 20)
            begin = int(datetime.now(UTC).timestamp()) - int(span * 1.1)
            return begin // step * step, None
        begin, end = self._range[0] // 1000, self._range[1] // 1000
        step = max(1, (end - begin) // 10)
        return begin // step * step, (2 * end - begin) // step * step + step

    async def _fetch(self, key: tuple[Any, ...]) -> Any:
        *_, group, search, offset, (since, until) = key
        return await self._stream.timeline(
            since=datetime.fromtimestamp(since, UTC),
            until=None if until is None else datetime.fromtimestamp(until, UTC),
            group=group,
            search=search or None,
            limit=_LANES,
            offset=offset,
            windows=_WINDOWS_PER_KEY,
        )

    def _show(self, found: dict[str, Any]) -> None:
        keys = found["keys"]
        lanes = {key: lane for lane, key in enumerate(keys)}
        self._windows = {_id(window): window for window in found["windows"]}
        bars = [
            [*_place(lanes, window), _state(window), window["count"], window["revision"], id_]
            for id_, window in self._windows.items()
        ]
        bars += [[*_place(lanes, window), "open", window["count"], 1, None] for window in found["open"]]
        self._timeline.show(
            {
                "now": _ms(found["now"]),
                "watermark": _ms(found["watermark"]),
                "graceMs": found["graceMs"],
                "keys": keys,
                "windows": bars,
            }
        )
        self._show_counts(found, len(keys))

    def _show_counts(self, found: dict[str, Any], shown: int) -> None:
        self._total_keys = found["totalKeys"]
        about = plural(shown, "key")
        if self._total_keys > shown:
            about += f" of {number(self._total_keys)}"
        if found["openWindows"] and self._counts_records:
            about += f" · {plural(found['openWindows'], 'open window')} not drawn: {_NOT_DRAWN}"
        elif found["openWindows"] and not found["openComplete"]:
            about += " · some open windows are not drawn"
        if found["hasMore"]:
            about += " · older windows are not drawn: zoom in"
        self._about.text = about
        self._pager.set_visibility(self._total_keys > _LANES)
        last = self._offset + shown
        self._pager_text.text = f"{number(self._offset + 1)}–{number(last)} of {number(self._total_keys)}"

    async def _pick(self, bar: dict[str, Any]) -> None:
        await self._on_pick(bar, self._windows.get(bar.get("id") or ""), self._group)

    async def _move(self, moved: dict[str, Any]) -> None:
        self._range = (int(moved["from"]), int(moved["to"]))
        if round((self._range[1] - self._range[0]) / 1000) not in _SPANS:
            self._spans.mark(None)
        await self.refresh()

    def _followed(self, on: bool) -> None:
        self._following.mark(on)

    def _follow(self, on: bool) -> None:
        self._timeline.follow(on)

    def _choose_span(self, seconds: int) -> None:
        self._timeline.span(seconds)

    async def _choose_group(self, group: str | None) -> None:
        if group != self._group:
            self._group = group
            await self.refresh()

    async def _find(self, text: str) -> None:
        self._search, self._offset = text, 0
        await self.refresh()

    async def _turn(self, by: int) -> None:
        offset = self._offset + by * _LANES
        if 0 <= offset < self._total_keys:
            self._offset = offset
            await self.refresh()


def _id(window: dict[str, Any]) -> str:
    return f"{window['partitionId']}/{window['transactionId']}"


def _place(lanes: dict[str, int], window: dict[str, Any]) -> tuple[int, int | None, int | None]:
    return lanes[window["key"]], _ms(window["start"]), _ms(window["end"])


def _ms(text: str | None) -> int | None:
    return None if text is None else round(datetime.fromisoformat(text).timestamp() * 1000)


def _state(window: dict[str, Any]) -> str:
    """The worst state of a window in the groups that were asked for."""
    states = {group["state"] for group in window["groups"]}
    return next((state for state in _WORST_FIRST if state in states), "waiting")
