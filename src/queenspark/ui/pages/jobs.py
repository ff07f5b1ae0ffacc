"""SQL jobs: all of them, and one with its statement, columns and troubles."""

from __future__ import annotations

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
    empty,
    field,
    panel,
    queue_url,
    tabs,
    tone_of,
    url,
)
from ..words import ago, clock, duration, number, rate
from .stream import explanation

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


def register() -> None:
    """Give the pages their paths."""
    ui.page("/jobs")(_list_page)
    ui.page("/job")(_job_page)


def _full_name(job: dict[str, Any]) -> str:
    return job["name"] if job["namespace"] == "default" else f"{job['namespace']}.{job['name']}"


async def _list_page() -> None:
    frame = Frame("Jobs", "/jobs", "SQL queries that run until they are dropped; their rows are messages.")
    queen = frame.session.queen

    async def change(verb: str, name: str) -> None:
        await control(frame, name, verb)
        await again()

    with frame.body:
        listing = Listing(_COLUMNS, sort="name", empty_text="No job matches.", on_action=change)
        nothing = ui.element("div")
        with nothing:
            empty("There is no job yet", "Write one on the page SQL:", _EXAMPLE)
    nothing.set_visibility(False)
    with frame.actions:
        field("Search jobs", on_change=listing.find)
        button("New job", lambda: ui.navigate.to("/sql"), kind="main", right="job:admin")

    async def fetch(asked: tuple[Any, ...]) -> Any:
        return await queen.admin.request("GET", "jobs", query=dict(asked[1:]))

    def show(answer: dict[str, Any]) -> None:
        listing.show([_row(job) for job in answer["jobs"]], answer["total"])
        is_empty = answer["total"] == 0 and not listing.search
        nothing.set_visibility(is_empty)
        listing.panel.set_visibility(not is_empty)

    again = listing.on_change = await frame.live(lambda: ("jobs", *listing.query().items()), fetch, show)


async def control(frame: Frame, name: str, verb: str) -> bool:
    """Pause, resume or restart a job."""
    said = {"pause": "is paused", "resume": "goes on", "restart": "tries again"}[verb]
    return await act(frame.session.queen.admin.request("POST", "jobs", name, verb), f"{name} {said}.")


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
            self.show_tab = tabs(("Explain", "Dead records", "Late records", "Rows"), self._tab)
        self.again = await self.frame.live(
            ("job", self.name), lambda _: self.queen.admin.request("GET", "jobs", self.name), self._show
        )
        await self.show_tab()

    def _show(self, job: dict[str, Any]) -> None:
        before, self.job = self.job, job
        self.frame.about.text = (
            f"version {job['version']} · rows go to the queue {job['queue']} · {job['rows']}"
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

    async def _control(self, verb: str) -> None:
        await control(self.frame, self.name, verb)
        await self.again()

    async def _drop(self) -> None:
        text = f"Its rows in the queue {self.job.get('queue', self.name)} go with it."
        if await confirm(f"Drop the job {self.name}?", text, "Drop") and await act(
            self.queen.admin.request("DELETE", "jobs", self.name), f"{self.name} is dropped."
        ):
            ui.navigate.to("/jobs")

    async def _tab(self, name: str) -> None:
        if name == "Explain":
            explanation(await self.queen.admin.request("GET", "jobs", self.name, "explain"))
        elif name == "Rows":
            link_to = queue_url(self.job.get("queue", self.name))
            ui.link(f"Browse the rows in the queue {self.job.get('queue', self.name)}", link_to).classes(
                "qs-link"
            )
        else:
            kind = "dead" if name == "Dead records" else "late"
            rows = (await self.queen.admin.request("GET", "jobs", self.name, kind))[kind]
            with panel(flush=True):
                Table(
                    [
                        {"name": "key", "label": "Key"},
                        {"name": "queue", "label": "Queue"},
                        {"name": "seen", "label": "Seen", "align": "right"},
                        {"name": "why", "label": "Reason" if kind == "dead" else "Time", "class": "wrap"},
                    ],
                    empty=f"No {kind} records.",
                ).show(
                    [
                        {
                            "id": number_,
                            "key": row["key"],
                            "queue": row["queue"] or "–",
                            "seen": ago(row["seenAt"]),
                            "why": row["reason"] or "no usable event time"
                            if kind == "dead"
                            else clock(row["time"]),
                        }
                        for number_, row in enumerate(rows)
                    ]
                )
