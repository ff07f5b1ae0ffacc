"""A stream: its windows on a timeline, its groups, and what can be done with them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
from nicegui import ui

from ..components import Table, Timeline, action, link
from ..frame import Frame, act
from ..parts import Segments, Tiles, box, button, confirm, facts, field, panel, queue_url, tabs, url
from ..words import ago, clock, duration, milliseconds, number, plural, rate, shape
from .window_drawer import WindowDrawer

_SPANS = {120: "2 min", 300: "5 min", 900: "15 min", 3600: "1 h", 21600: "6 h"}
_LANES = 20
_KEYS = (
    ("open", "open"),
    ("waiting", "sealed, waiting"),
    ("leased", "leased"),
    ("acked", "acked"),
    ("retrying", "failed, coming again"),
    ("dead", "dead"),
    ("late", "late revision"),
    ("skipped", "skipped"),
)


def register() -> None:
    """Give the page its path."""
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
        self.group: str | None = None
        self.search = ""
        self.offset = 0
        self.range: tuple[int, int] | None = None
        self.windows: dict[str, dict[str, Any]] = {}
        self.detail: dict[str, Any] = {}
        self.total_keys = 0

    async def build(self) -> None:
        """Make the page."""
        with self.frame.actions:
            button("Redefine", self._redefine, right="stream:admin")
            button("Delete", self._delete, kind="bad", right="stream:admin")
        with self.frame.body:
            self.tiles = Tiles(
                ("Watermark", "Lag", "Open", "Sealed", "Late", "Dropped", "Dead records", "Records")
            )
            self._timeline_panel()
            ui.element("div").style("height: 20px")
            self.show_tab = tabs(
                ("Groups", "Definition", "Late records", "Dead records", "Why no window?"), self._tab
            )
        self.drawer = WindowDrawer(self.frame, self.stream, self._after_seek)
        self.again = await self.frame.live(
            ("stream", self.namespace, self.name), lambda _: self.stream.describe(), self._show_detail
        )
        self.again_timeline = await self.frame.live(self._question, self._fetch, self._show_timeline)
        await self.show_tab()

    # The timeline

    def _timeline_panel(self) -> None:
        with panel(flush=True):
            with box("qs-title"):
                ui.label("Timeline")
                with ui.element("small"):
                    self.keys_text = ui.label()
                with box("right"):
                    field("Search keys", on_change=self._find).style("width: 150px")
                    self.groups = Segments({}, None, self._choose_group, "Group")
                    self.spans = Segments(_SPANS, 300, self._choose_span, "Time shown")
                    self.following = Segments(
                        {True: "Follow", False: "Freeze"}, True, self._follow, "Follow the clock"
                    )
            self.timeline = Timeline(on_pick=self._pick, on_range=self._moved, on_follow=self._followed)
            with box("qs-pager") as self.pager:
                self.pager_text = ui.label()
                button("‹ Busier keys", lambda: self._turn(-1))
                button("More keys ›", lambda: self._turn(1))
            self.pager.set_visibility(False)
            with box("qs-key"):
                for state, word in _KEYS:
                    with ui.element("span"):
                        ui.element("i").classes(state)
                        ui.label(word)

    def _question(self) -> tuple[Any, ...]:
        return (
            "timeline",
            self.namespace,
            self.name,
            self.group,
            self.search,
            self.offset,
            self._asked_range(),
        )

    def _asked_range(self) -> tuple[int, int | None]:
        """From and until, in seconds; rounded, so that people who look at about the same share the answer."""
        if self.range is None or self.following.value:
            span = (
                int(self.spans.value or 300)
                if self.range is None
                else (self.range[1] - self.range[0]) // 1000
            )
            step = max(5, span // 20)
            begin = int(datetime.now(UTC).timestamp()) - int(span * 1.1)
            return begin // step * step, None
        step = max(1, (self.range[1] - self.range[0]) // 10_000)
        width = (self.range[1] - self.range[0]) // 1000
        return self.range[0] // 1000 // step * step, (self.range[1] // 1000 + width) // step * step + step

    async def _fetch(self, question: tuple[Any, ...]) -> Any:
        _, _, _, group, search, offset, (since, until) = question
        return await self.stream.timeline(
            since=datetime.fromtimestamp(since, UTC),
            until=None if until is None else datetime.fromtimestamp(until, UTC),
            group=group,
            search=search or None,
            limit=_LANES,
            offset=offset,
            windows=300,
        )

    def _show_timeline(self, answer: dict[str, Any]) -> None:
        self.windows = {}
        keys = sorted(answer["keys"]) if len(answer["keys"]) <= _LANES else answer["keys"]
        lanes = {key: lane for lane, key in enumerate(keys)}
        bars: list[list[Any]] = []
        for window in answer["windows"]:
            id_ = f"{window['partitionId']}/{window['transactionId']}"
            self.windows[id_] = window
            bars.append(
                [
                    lanes[window["key"]],
                    _ms(window["start"]),
                    _ms(window["end"]),
                    _state(window),
                    window["count"],
                    window["revision"],
                    id_,
                ]
            )
        for window in answer["open"]:
            start, end = _ms(window["start"]), _ms(window["end"])
            bars.append([lanes[window["key"]], start, end, "open", window["count"], 1, None])
        self.timeline.show(
            {
                "now": _ms(answer["now"]),
                "watermark": _ms(answer["watermark"]),
                "safe": _ms(answer["safeTime"]),
                "graceMs": answer["graceMs"],
                "keys": keys,
                "windows": bars,
            }
        )
        self.total_keys = answer["totalKeys"]
        shown = (
            f"{plural(len(keys), 'key')} of {number(self.total_keys)}" if self.total_keys > len(keys) else ""
        )
        more = (
            "" if answer["openComplete"] or not answer["openWindows"] else ", not all open windows are shown"
        )
        self.keys_text.text = (shown or plural(len(keys), "key")) + more
        self.pager.set_visibility(self.total_keys > _LANES)
        self.pager_text.text = (
            f"{number(self.offset + 1)}–{number(self.offset + len(keys))} of {number(self.total_keys)}"
        )

    async def _pick(self, bar: dict[str, Any]) -> None:
        await self.drawer.open(bar, self.windows.get(bar.get("id") or ""), self.group)

    async def _moved(self, moved: dict[str, Any]) -> None:
        self.range = (int(moved["from"]), int(moved["to"]))
        span = round((self.range[1] - self.range[0]) / 1000)
        if span not in _SPANS:
            self.spans.mark(None)
        await self.again_timeline()

    def _followed(self, on: bool) -> None:
        self.following.mark(on)

    def _follow(self, on: bool) -> None:
        self.timeline.follow(on)

    async def _choose_span(self, seconds: int) -> None:
        self.timeline.span(seconds)

    async def _choose_group(self, group: str | None) -> None:
        self.group = group
        await self.again_timeline()

    async def _find(self, text: str) -> None:
        self.search, self.offset = text, 0
        await self.again_timeline()

    async def _turn(self, by: int) -> None:
        offset = self.offset + by * _LANES
        if 0 <= offset < self.total_keys:
            self.offset = offset
            await self.again_timeline()

    # Beside it

    def _show_detail(self, detail: dict[str, Any]) -> None:
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
        names = [group["name"] for group in detail["groups"]]
        if self.group is None and names:
            self.group = self.groups.value = names[0]
        if len(names) <= 6:
            self.groups.offer({name: name for name in names})
        self.groups.mark(self.group)
        if hasattr(self, "group_table"):  # made before the first answer when that is slow
            self.group_table.show(self._group_rows())

    async def _tab(self, name: str) -> None:
        match name:
            case "Groups":
                self._groups_tab()
            case "Definition":
                await self._definition_tab()
            case "Late records":
                await self._records_tab("late")
            case "Dead records":
                await self._records_tab("dead")
            case _:
                await self._explain_tab()

    def _groups_tab(self) -> None:
        with panel(flush=True):
            self.group_table = Table(
                [
                    {"name": "name", "label": "Group"},
                    {"name": "lag", "label": "Windows to do", "align": "right"},
                    {"name": "processing", "label": "Leased", "align": "right"},
                    {"name": "oldest", "label": "Oldest", "align": "right"},
                    {"name": "acked", "label": "Last ack", "align": "right"},
                    {"name": "seek", "label": "", "align": "right"},
                ],
                empty="No group has polled this stream yet: queen.consumer(stream, group).process(…)",
                on_action=self._group_action,
            )
            self.group_table.show(self._group_rows())

    def _group_rows(self) -> list[dict[str, Any]]:
        return [
            {
                "id": group["name"],
                "name": link(group["name"], url("/group", name=group["name"])),
                "lag": number(group["lag"]),
                "processing": number(group["processing"]),
                "oldest": ago(group["oldestUnackedAt"]) if group["oldestUnackedAt"] else "–",
                "acked": ago(group["lastAckedAt"]),
                "seek": [
                    action("Seek…", "seek", right="stream:admin"),
                    action("Retry dead", "retry", right="queue:admin"),
                    action("Delete dead", "bury", tone="bad", right="queue:admin"),
                ],
            }
            for group in self.detail.get("groups", [])
        ]

    async def _group_action(self, name: str, group: str) -> None:
        queue = self.detail["windowQueue"]
        query = {"queue": queue, "consumerGroup": group}
        if name == "seek":
            await self._seek(group)
        elif name == "retry" and await confirm(
            f"Retry the dead windows of {group}?",
            "The group gets them again.",
            "Retry",
            bad=False,
        ):
            work = self.queen.admin.request("POST", "dlq", "retry", query=query)
            await act(work, lambda answer: f"{plural(answer['count'], 'window')} will come again.")
        elif name == "bury" and await confirm(
            f"Delete the dead windows of {group}?", "The group will never get them again.", "Delete"
        ):
            work = self.queen.admin.request("DELETE", "dlq", query=query)
            await act(work, lambda answer: f"Deleted {plural(answer['count'], 'dead window')}.")
        await self._after_seek()

    async def _seek(self, group: str) -> None:
        with ui.dialog() as dialog, ui.card().classes("qs-dialog"):
            with ui.element("h2"):
                ui.label(f"Seek group {group}")
            with ui.element("p"):
                ui.label(
                    "It gets the windows that end after this point, again or for the first time."
                    " Leases are revoked."
                )
            time = field(
                "Time, such as 2026-01-31T12:00:00Z", datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            )
            with box("row"):
                button("Cancel", dialog.close)
                button("To the beginning", lambda: dialog.submit("beginning"))
                button("To the end", lambda: dialog.submit("end"))
                button("To this time", lambda: dialog.submit("time"), kind="main")
        to = await dialog
        given = time.value
        dialog.delete()
        if to is None:
            return
        if to == "time":
            await act(self.stream.seek(group, given), f"{group} goes on from {given}.")
        else:
            queue = self.queen.queue(self.detail["windowQueue"]).group(group)
            await act(queue.seek(to), f"{group} goes on from the {to}.")

    async def _after_seek(self) -> None:
        await self.again()
        await self.again_timeline()

    async def _definition_tab(self) -> None:
        versions = await self.stream.versions()
        with box("qs-grid two"):
            for number_, version in enumerate(versions):
                about = f"since {clock(version['createdAt'])}" + (", in force" if number_ == 0 else "")
                with panel(f"Version {version['version']}", about=about):
                    facts(_definition(version))

    async def _records_tab(self, kind: str) -> None:
        rows = await (self.stream.late_messages() if kind == "late" else self.stream.dead_messages())
        columns = [
            {"name": "key", "label": "Key"},
            {"name": "seen", "label": "Seen", "align": "right"},
            {"name": "queue", "label": "Queue"},
            {"name": "what", "label": "Time and window" if kind == "late" else "Reason", "class": "wrap"},
        ]
        with panel(flush=True):
            Table(columns, empty=f"No {kind} records.").show(
                [
                    {
                        "id": number_,
                        "key": row["key"],
                        "seen": ago(row["seenAt"]),
                        "queue": {
                            "text": row["queue"] or "gone",
                            "href": queue_url(row["queue"]) if row["queue"] else None,
                        },
                        "what": f"{clock(row['time'])}, closed up to {clock(row['closedUpTo'])}"
                        + (", dropped" if row["dropped"] else ", made a new revision")
                        if kind == "late"
                        else row["reason"] or "no usable event time",
                    }
                    for number_, row in enumerate(rows)
                ]
            )

    async def _explain_tab(self) -> None:
        query = {"namespace": self.namespace}
        found = await self.queen.admin.request(
            "GET", "resources", "streams", self.name, "explain", query=query
        )
        explanation(found)

    # What changes the stream

    async def _redefine(self) -> None:
        wire = {
            "source_queue_names": self.detail["sourceQueues"],
            **{
                _snake(name): value
                for name, value in self.detail.items()
                if _snake(name) in _WIRE and value is not None
            },
        }
        with ui.dialog() as dialog, ui.card().classes("qs-dialog").style("width: 640px"):
            with ui.element("h2"):
                ui.label(f"Redefine {self.name}")
            with ui.element("p"):
                ui.label(
                    "A change of the windows, the key or the event time begins a new version; everything else"
                    " applies within this one."
                )
            text = msgspec.json.format(msgspec.json.encode(wire), indent=2).decode()
            editor = ui.codemirror(text, language="JSON", theme=_theme()).style("max-height: 50vh")
            reset = ui.checkbox("Reset: window the history again").props("dense")
            with box("row"):
                button("Cancel", dialog.close)
                button("Redefine", lambda: dialog.submit(True), kind="main")
        answer = await dialog
        given, is_reset = editor.value, reset.value
        dialog.delete()
        if not answer:
            return
        try:
            body = msgspec.json.decode(given)
        except msgspec.DecodeError as error:
            ui.notify(f"The definition is not valid JSON: {error}", type="negative")
            return
        body |= {"name": self.name, "namespace": self.namespace, "reset": is_reset}
        work = self.queen.admin.request("POST", "stream", "define", body=body)
        if await act(work, lambda found: f"Version {found['version']} is in force."):
            await self.again()
            await self.show_tab()

    async def _delete(self) -> None:
        text = "Its windows, groups and dead windows go with it. The source queues stay."
        if await confirm(f"Delete the stream {self.name}?", text, "Delete") and await act(
            self.stream.delete(), f"{self.name} is deleted."
        ):
            ui.navigate.to("/streams")


def explanation(found: dict[str, Any]) -> None:
    """Why the next window is not sealed yet."""
    with box("qs-grid two"):
        with panel("Why the next window is not sealed yet"):
            for reason in found["reasons"]:
                with box().style("padding: 6px 0"):
                    ui.label(reason["text"]).style("font-weight: 500")
                    ui.label(reason["fix"]).classes("soft")
            if not found["reasons"]:
                ui.label("There is no reason that it should not be.")
        with panel("Next window"):
            following = found["next"]
            if following is None:
                ui.label("No window is open.").classes("soft")
            else:
                facts(
                    (
                        ("Key", following["key"]),
                        ("Start", clock(following["start"])),
                        ("End", clock(following["end"])),
                        ("Records", number(following["records"])),
                        ("Sealed at about", clock(following["sealedAtAbout"])),
                    )
                )


def _definition(version: dict[str, Any]) -> list[tuple[str, str]]:
    pairs = [
        ("Windows", shape(version)),
        ("Sources", ", ".join(version["sourceQueues"])),
        ("Key", ", ".join(version["key"]) or ("the partition" if version["partitioned"] else "one for all")),
        ("Grace", milliseconds(version["windowGracePeriodMs"])),
        ("Lease", milliseconds(version["windowLeaseTimeoutMs"])),
        (
            "Windows are kept",
            milliseconds(version["windowRetentionMs"]) if version["windowRetentionMs"] else "always",
        ),
        ("Time", version["eventTime"] or "when a message was pushed"),
        (
            "Late records",
            {
                "process": "make a new revision",
                "warn": "make a new revision, and are logged",
                "drop": "are dropped and listed",
            }[version["late"]],
        ),
    ]
    for name, label in (("where", "Where"), ("having", "Having")):
        if version[name]:
            pairs.append((label, version[name]))
    pairs += [(name, text) for name, text in version["aggregates"].items()]
    return pairs


_WIRE = {
    "partitioned",
    "window_type",
    "window_duration_ms",
    "window_slide_ms",
    "window_gap_ms",
    "window_size_count",
    "window_slide_count",
    "window_grace_period_ms",
    "window_lease_timeout_ms",
    "window_retention_ms",
    "event_time",
    "late",
    "idle_timeout_ms",
    "emit_empty",
    "key",
    "where",
    "aggregates",
    "having",
}


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _theme() -> Any:
    return "vscodeDark" if ui.context.client.request.cookies.get("theme") == "dark" else "vscodeLight"


def _ms(text: str | None) -> int | None:
    return None if text is None else round(datetime.fromisoformat(text).timestamp() * 1000)


def _state(window: dict[str, Any]) -> str:
    states = [group["state"] for group in window["groups"]]
    order = ("dead", "retrying", "leased", "waiting", "acked", "skipped")
    return next((state for state in order if state in states), "waiting")
