"""SQL jobs: the list, and one job with its statement, columns and problems."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from nicegui import ui

from ..components import Table, action, badge, link
from ..frame import Frame, act
from ..parts import (
    Listing,
    Tiles,
    box,
    button,
    code,
    confirm,
    field,
    panel,
    queue_url,
    tone_of,
    url,
)
from ..tabs import Tab, Tabs
from ..words import clock, duration, number, rate
from . import explanation
from .records import Records

_EXAMPLE = "CREATE STREAM pages AS SELECT page, COUNT(*) AS n FROM clicks GROUP BY page;"
_COLUMNS: list[dict[str, Any]] = [
    {"name": "name", "label": "Job", "sort": True},
    {"name": "state", "label": "State"},
    {"name": "records", "label": "Records/s", "align": "right"},
    {"name": "rows", "label": "Rows/s", "align": "right"},
    {"name": "lag", "label": "Lag", "align": "right"},
    {"name": "watermark", "label": "Watermark", "align": "right"},
    {"name": "dead", "label": "Dead", "align": "right"},
    {"name": "error", "label": "Last error", "class": "wrap"},
    {"name": "act", "label": "", "align": "right"},
]
_START = ("No jobs yet", "Write one on the SQL page:", _EXAMPLE)


def register() -> None:
    """Register the routes."""
    ui.page("/jobs")(_list_page)
    ui.page("/job")(_job_page)


def _full_name(job: dict[str, Any]) -> str:
    return job["name"] if job["namespace"] == "default" else f"{job['namespace']}.{job['name']}"


async def _list_page() -> None:
    frame = Frame("Jobs", "/jobs", "Continuous SQL queries; their rows are messages of a queue.")

    async def change(verb: str, name: str) -> None:
        await control(frame, name, verb)
        await live.refresh()

    with frame.body:
        listing = Listing(_COLUMNS, sort="name", empty_text="No job matches.", start=_START, on_action=change)
    with frame.actions:
        field("Search jobs", on_change=listing.find)
        button("New job", lambda: ui.navigate.to("/sql"), kind="main", right="job:admin")
    live = await frame.live_list(listing, "jobs", name="jobs", row=_row)


async def control(frame: Frame, name: str, verb: str) -> bool:
    """Pause, resume or restart a job."""
    done = {"pause": "Paused", "resume": "Resumed", "restart": "Restarted"}[verb]
    return await act(frame.session.queen.admin.request("POST", "jobs", name, verb), f"{done} {name}.")


def _verbs(state: str) -> list[str]:
    return {"running": ["pause"], "paused": ["resume"], "failed": ["restart", "pause"]}.get(state, [])


def _row(job: dict[str, Any]) -> dict[str, Any]:
    name = _full_name(job)
    return {
        "id": name,
        "name": link(
            name,
            url("/job", name=name),
            sub=_short(job["statement"].partition(" AS ")[2] or job["statement"]),
        ),
        "state": badge(job["state"], tone_of(job["state"])),
        "records": rate(job["recordsPerSecond"]),
        "rows": rate(job["rowsPerSecond"]),
        "lag": duration(job["lagSeconds"]),
        "watermark": clock(job["watermark"]),
        "dead": number(job["dead"]),
        "error": job["lastError"] or {"text": "–", "faint": True},
        "act": [action(verb.capitalize(), verb, right="job:admin") for verb in _verbs(job["state"])] or "",
    }


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 56 else line[:56] + "…"


async def _job_page(name: str) -> None:
    await _JobPage(name).build()


class _JobPage:
    """One job in one browser."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.frame = Frame(name, "/jobs", crumb=("Jobs", "/jobs"))
        self.queen = self.frame.session.queen
        self.job: dict[str, Any] = {}

    async def build(self) -> None:
        """Make the page."""
        with self.frame.actions:
            self.verbs = box().style("display: flex; gap: 8px")
            button("Drop", self._drop, kind="bad", right="job:admin")
        with self.frame.body:
            self.tiles = Tiles(
                ("State", "Records", "Rows", "Lag", "Watermark", "Open windows", "Late", "Dead")
            )
            self.error = box()
            with box("qs-grid side"):
                with panel("Statement"):
                    self.statement = box()
                with panel("Columns", flush=True):
                    self.columns = Table(
                        [{"name": "name", "label": "Name"}, {"name": "type", "label": "Type"}]
                    )
            ui.element("div").style("height: 20px")
            self.tabs = Tabs(self.frame, self._tabs())
        self.live = await self.frame.live(("job", self.name), lambda _: self._describe(), self._show)
        await self.tabs.start()

    async def _describe(self) -> Any:
        return await self.queen.admin.request("GET", "jobs", self.name)

    def _show(self, job: dict[str, Any]) -> None:
        before, self.job = self.job, job
        self.frame.about.text = (
            f"version {job['version']} · writes to the queue {job['queue']} · {job['rows']} rows"
        )
        tone = {"failed": "bad", "paused": "warn"}.get(job["state"], "")
        show = self.tiles.show
        show("State", job["state"], "", tone)
        show("Records", rate(job["recordsPerSecond"]), "/s")
        show("Rows", rate(job["rowsPerSecond"]), "/s")
        show("Lag", duration(job["lagSeconds"]), "", "warn" if job["lagSeconds"] > 30 else "")
        show("Watermark", clock(job["watermark"]))
        show("Open windows", number(job["openWindows"]))
        show("Late", number(job["late"]))
        show("Dead", number(job["dead"]), "", "bad" if job["dead"] else "")
        self.columns.show([{"id": each["name"], **each} for each in job["columns"]])
        if before.get("statement") != job["statement"]:
            self.statement.clear()
            with self.statement:
                code(job["statement"])
        if before.get("state") != job["state"] or before.get("lastError") != job["lastError"]:
            self.verbs.clear()
            with self.verbs:
                for verb in _verbs(job["state"]):
                    button(verb.capitalize(), partial(self._control, verb), kind="main", right="job:admin")
            self.error.clear()
            if job["lastError"]:
                with self.error, box("qs-error"):
                    ui.label(job["lastError"])

    async def _refresh_tab(self) -> None:
        await self.tabs.refresh()

    async def _control(self, verb: str) -> None:
        await control(self.frame, self.name, verb)
        await self.live.refresh()

    async def _drop(self) -> None:
        text = f"Its rows in the queue {self.job.get('queue', self.name)} are deleted with it."
        if await confirm(f"Drop the job {self.name}?", text, "Drop") and await act(
            self.queen.admin.request("DELETE", "jobs", self.name), f"Dropped {self.name}."
        ):
            ui.navigate.to("/jobs")

    def _tabs(self) -> tuple[Tab, ...]:
        key = ("job", self.name)

        async def read(kind: str, limit: int, offset: int) -> Any:
            query = {"limit": limit, "offset": offset}
            return (await self.queen.admin.request("GET", "jobs", self.name, kind, query=query))[kind]

        return (
            Tab(
                "Explain",
                (*key, "explain"),
                lambda _: self.queen.admin.request("GET", "jobs", self.name, "explain"),
                explanation.build,
            ),
            Records("dead", key, partial(read, "dead"), self._refresh_tab).tab,
            Records("late", key, partial(read, "late"), self._refresh_tab).tab,
            Tab("Rows", key, lambda _: self._describe(), _build_rows),
        )


def _build_rows() -> Callable[[dict[str, Any]], None]:
    room = panel()

    def show(job: dict[str, Any]) -> None:
        room.clear()
        with room:
            ui.link(f"Browse the rows in the queue {job['queue']}", queue_url(job["queue"])).classes(
                "qs-link"
            )

    return show
