"""The condition of a job, as shown by the API."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ...store.job import Condition, Job
from ..times import iso
from ..window import shown_time


def shown_condition(job: Job, condition: Condition) -> dict[str, Any]:
    """State, rates and counts of a job."""
    progress = condition.progress
    mark = progress["watermark_us"]
    return {
        "state": condition.state,
        "recordsPerSecond": condition.rates.get("processed", 0.0),
        "rowsPerSecond": condition.rates.get("sealed", 0.0),
        "lagSeconds": _age(progress["now"], _unread_since(condition)),
        "watermark": None if mark is None else shown_time(mark),
        "openWindows": progress["open_windows"],
        "late": progress["late"],
        "dropped": progress["dropped"],
        "dead": progress["dead"],
        "lastError": condition.last_error,
        "runsIn": "own query" if job.definition.runs_alone else "streams",
    }


def _unread_since(condition: Condition) -> datetime | None:
    """Since when the oldest message waits to be read, or the oldest file."""
    since = None if condition.run is None else condition.run["report"].get("unreadSince")
    return condition.progress["unread_since"] if since is None else datetime.fromisoformat(since)


def shown_run(condition: Condition) -> dict[str, Any] | None:
    """The read progress of a job with its own query; None for others, and before it started."""
    run = condition.run
    if run is None:
        return None
    counts = {"records": condition.progress["records"], "rows": condition.progress["windows"]}
    return {
        **run["report"],
        **counts,
        "dead": condition.progress["dead"],
        "finishedAt": iso(run["finished_at"]),
    }


def shown_retention(condition: Condition) -> dict[str, Any]:
    """The retention held for a job, how long beyond its time, and how many messages the job has missed."""
    progress = condition.progress
    return {
        "needsSince": iso(progress["needs_since"]),
        "heldSince": iso(progress["held_since"]),
        "heldSeconds": _age(progress["now"], progress["held_since"]),
        "removed": progress["removed"],
    }


def shown_job(job: Job, condition: Condition) -> dict[str, Any]:
    """A job as shown in lists."""
    return {
        "name": job.name,
        "namespace": job.namespace,
        "queue": job.queue,
        "statement": job.statement,
        "version": job.version,
        **shown_condition(job, condition),
        "createdAt": iso(job.created_at),
        "updatedAt": iso(job.updated_at),
    }


def _age(now: datetime, since: datetime | None) -> float:
    return round(max(0.0, (now - since).total_seconds()), 3) if since is not None else 0.0
