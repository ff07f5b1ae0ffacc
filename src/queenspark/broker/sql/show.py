"""SHOW: lists of streams, jobs, queues and functions."""

from __future__ import annotations

import asyncio
from typing import Any

from ...sql.canonical import shown
from ...sql.expressions import FUNCTIONS
from ...sql.planning.aggregates import AGGREGATES
from ...sql.statements import Show
from ...store.counts import Counts
from ...store.job import Job
from ...store.job_change import JobChange
from ...store.page import Page
from ...store.queues import Queues
from ..http import Caller, Right
from .catalogue import outside_of, parsed_schema, parsed_source, queues_of, read_by
from .condition import shown_condition
from .planner import stored_plan
from .table import Result, kind_of_rows, table

_STREAMS = [
    ("name", "string"),
    ("kind", "string"),
    ("rows", "string"),
    ("reads", "string"),
    ("statement", "string"),
]
_JOBS = [
    ("job", "string"), ("state", "string"), ("version", "int"), ("records_per_second", "double"),
    ("rows_per_second", "double"), ("lag_seconds", "double"), ("watermark", "timestamp"),
    ("open_windows", "bigint"), ("late", "bigint"), ("dropped", "bigint"), ("dead", "bigint"),
    ("last_error", "string"), ("runs_in", "string"),
]  # fmt: skip
_QUEUES = [("queue", "string"), ("partitions", "bigint"), ("messages", "bigint"), ("pending", "bigint")]
_FUNCTIONS = [
    ("function", "string"),
    ("signature", "string"),
    ("family", "string"),
    ("description", "string"),
]
_ALL = 2**31 - 1  # queues, in one page
_OUTSIDE = [("name", "string"), ("connector", "string"), ("statement", "string")]


class Shows:
    """Runs SHOW."""

    def __init__(self, queues: Queues, counts: Counts, caller: Caller) -> None:
        self._queues = queues
        self._counts = counts
        self._caller = caller

    async def show(self, change: JobChange, statement: Show) -> Result:
        """Return the list requested by a statement."""
        match statement.what:
            case "STREAMS":
                return table("show", _STREAMS, self._mine(await _streams(change)))
            case "JOBS":
                return table("show", _JOBS, self._mine(await _jobs(change)))
            case "QUEUES":
                await self._counts.refresh()
                rows, _ = await self._queues.page(Page(_ALL, visible=self._caller.visible(Right.QUEUE_READ)))
                shown = [[row["name"], row["partitions"], row["messages"], row["pending"]] for row in rows]
                return table("show", _QUEUES, shown)
            case "FUNCTIONS":
                return table("show", _FUNCTIONS, _functions())
            case "SOURCES":
                return table("show", _OUTSIDE, self._mine(await _sources(change)))
            case "SINKS":
                return table("show", _OUTSIDE, self._mine(await _sinks(change)))

    def _mine(self, rows: list[list[Any]]) -> list[list[Any]]:
        """Filter rows to names, their first value, visible to the caller."""
        return [row for row in rows if self._caller.may(Right.JOB_READ, row[0])]


async def _streams(change: JobChange) -> list[list[Any]]:
    jobs = [job for job in await change.all() if job.definition.writes is None]
    kinds = await asyncio.to_thread(lambda: [*map(_kind_of_rows, jobs)])
    found = []
    for job, kind in zip(jobs, kinds, strict=True):
        reads = ", ".join(read_by(job))
        found.append([job.full_name, "job", kind, reads, job.statement])
    for declared in await change.relations.all():
        if declared.kind != "schema":
            continue
        reads = ", ".join(queues_of(parsed_schema(declared)))
        found.append([declared.name, "schema", kind_of_rows(False), reads, declared.statement])
    return sorted(found)


def _kind_of_rows(job: Job) -> str:
    plan = stored_plan(job)
    return "unknown" if plan is None else kind_of_rows(plan.updating)


async def _sources(change: JobChange) -> list[list[Any]]:
    declared = [parsed_source(each) for each in await change.relations.all() if each.kind == "source"]
    return [[each.name, outside_of(each).connector, shown(each)] for each in declared]


async def _sinks(change: JobChange) -> list[list[Any]]:
    sinks = [(job, job.definition.writes) for job in await change.all()]
    return [[job.full_name, writes.connector, job.statement] for job, writes in sinks if writes is not None]


async def _jobs(change: JobChange) -> list[list[Any]]:
    jobs = await change.all()
    conditions = await change.conditions(jobs)
    found = []
    for job in jobs:
        shown = shown_condition(job, conditions[job.id])
        found.append([
            job.full_name, shown["state"], job.version, shown["recordsPerSecond"], shown["rowsPerSecond"],
            shown["lagSeconds"], shown["watermark"], shown["openWindows"], shown["late"], shown["dropped"],
            shown["dead"], shown["lastError"], shown["runsIn"],
        ])  # fmt: skip
    return found


def _functions() -> list[list[str]]:
    scalars = [[each.name, each.signature, each.family, each.doc] for each in FUNCTIONS.values()]
    aggregates = [[each.name, each.signature, "aggregates", each.doc] for each in AGGREGATES.values()]
    return sorted(scalars + aggregates)
