"""GET /api/v1/attention: problems that need attention, as text."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from ..store.definitions import job_name, stream_of_queue
from ..store.page import Page
from .broker import Broker
from .http import Call, Caller, Response, Right, Route, json
from .reach import stream_name
from .responses.system import AttentionList
from .stream_resources import stream_stats
from .times import iso

_MOST = 50
_SILENT_SECONDS = 60.0  # without an ack, for a group with a backlog
_HELD_SECONDS = 10.0
_BEHIND_SECONDS = 30.0
_RECENTLY_SECONDS = 900.0


class Item(NamedTuple):
    """A problem. `kind` and `name` identify its page."""

    severity: str
    code: str
    text: str
    kind: str
    name: str | None = None
    namespace: str | None = None
    since: datetime | None = None

    def shown(self) -> dict[str, Any]:
        """The item as shown by the API."""
        return {**self._asdict(), "since": iso(self.since)}


def in_words(seconds: float) -> str:
    """Format a duration for people: "40 s", "4 minutes", "2 hours"."""
    for size, noun in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            number = int(seconds // size)
            return f"{number} {noun}{'' if number == 1 else 's'}"
    return f"{int(seconds)} s"


async def attention(broker: Broker, call: Call) -> Response:
    """List problems visible to the caller, worst first."""
    caller = call.caller
    # Shared by all callers with the same visibility.
    name = f"attention {caller.role} {caller.scopes} {sorted(caller.rights)}"
    return json(await broker.cache.get(name, lambda: _attention(broker, caller)))


async def _attention(broker: Broker, caller: Caller) -> dict[str, Any]:
    now = datetime.now(UTC)
    stats = await stream_stats(broker)
    found = [
        *await _jobs(broker, caller),
        *await _streams(broker, caller, stats),
        *await _groups(broker, caller, now),
    ]
    if caller.can(Right.SYSTEM_READ):
        holder = await broker.store.clock.holder()
        found += [
            *_pipeline(stats, await _has_jobs(broker)),
            *_maintenance(broker),
            *_holder(holder, now, named=caller.can(Right.SYSTEM_ADMIN)),
            *await _dead_letters(broker),
        ]
    found.sort(key=lambda item: ("error", "warning", "notice").index(item.severity))
    return {"attention": [item.shown() for item in found[:_MOST]], "total": len(found)}


async def _has_jobs(broker: Broker) -> bool:
    _, total = await broker.store.jobs.page(Page(1))
    return total > 0


def _pipeline(stats: dict[str, Any], has_jobs: bool) -> Iterator[Item]:
    if (stats["streams"] or has_jobs) and not stats["pipeline"]["active"]:
        yield Item(
            "error",
            "no_pipeline",
            "No pipeline is leading, so no window is sealed. Start one with `queenspark pipeline`.",
            "system",
        )
    pressure = stats["pipeline"]["query"].get("backpressure") or 0.0
    if stats["pipeline"]["active"] and pressure > 1.2 and stats["lagSeconds"] > _BEHIND_SECONDS:
        yield Item(
            "warning",
            "backpressure",
            f"The pipeline is falling behind: messages arrive {pressure:.1f} times as fast as they are"
            " processed.",
            "system",
        )


def _maintenance(broker: Broker) -> Iterator[Item]:
    if broker.modes.push:
        yield Item(
            "warning",
            "push_maintenance",
            "Push maintenance is on: pushes are staged, not appended.",
            "system",
        )
    if broker.modes.pop:
        yield Item("warning", "pop_maintenance", "Pop maintenance is on: nothing is delivered.", "system")


def _holder(holder: dict[str, Any] | None, now: datetime, *, named: bool) -> Iterator[Item]:
    seconds = (holder or {}).get("seconds") or 0.0
    if holder is None or seconds < _HELD_SECONDS:
        return
    who = f"{holder['application'] or 'a process'} (pid {holder['pid']}, {holder['state']})"
    yield Item(
        "error" if seconds > 6 * _HELD_SECONDS else "warning",
        "open_transaction",
        f"A transaction{f' of {who}' if named else ''} has held back the horizon for {in_words(seconds)}.",
        "system",
        since=now - timedelta(seconds=seconds),
    )


async def _jobs(broker: Broker, caller: Caller) -> list[Item]:
    if not caller.can(Right.JOB_READ):
        return []
    jobs, _ = await broker.store.jobs.page(Page(visible=caller.visible(Right.JOB_READ)))
    if not jobs:
        return []
    conditions = await broker.store.jobs.conditions(jobs)
    found = []
    for job in jobs:
        condition = conditions.get(job.id)
        name = job_name(job.namespace, job.name)
        if condition is None:
            continue
        if condition.state == "failed":
            reason = (condition.last_error or "no reason given").splitlines()[0]
            found.append(
                Item("error", "job_failed", f"Job {name} has failed: {reason}", "job", name, job.namespace)
            )
        elif condition.state == "paused":
            found.append(Item("notice", "job_paused", f"Job {name} is paused.", "job", name, job.namespace))
    return found


async def _streams(broker: Broker, caller: Caller, stats: dict[str, Any]) -> list[Item]:
    found = []
    troubles = await broker.store.streams.troubles([int(row["id"]) for row in stats["byStream"]])
    for row in stats["byStream"]:
        name, namespace = row["name"], row["namespace"]
        if not caller.may(Right.STREAM_READ, stream_name(namespace, name)):
            continue
        error = troubles.get(int(row["id"]))
        if error is not None:
            reason = error.splitlines()[0]
            text = f"Stream {name} has stopped: {reason}"
            found.append(Item("error", "stream_failed", text, "stream", name, namespace))
        elif row["lagSeconds"] > _BEHIND_SECONDS:
            text = f"Stream {name} is {in_words(row['lagSeconds'])} behind its source queues."
            found.append(Item("warning", "stream_behind", text, "stream", name, namespace))
    return found


async def _groups(broker: Broker, caller: Caller, now: datetime) -> list[Item]:
    page = Page(_MOST, sort="lagSeconds", descending=True, visible=caller.visible(Right.QUEUE_READ))
    rows, _ = await broker.store.groups.page(page, min_lag_seconds=_SILENT_SECONDS)
    found = []
    for row in rows:
        since = row["acked_at"] or row["oldest"]
        silent = 0.0 if since is None else (now - since).total_seconds()
        if not row["lag"] or silent < _SILENT_SECONDS:
            continue
        stream = stream_of_queue(row["queue"])
        right = Right.QUEUE_READ if stream is None else Right.STREAM_READ
        if not caller.may(right, row["queue"] if stream is None else stream_name(*stream)):
            continue
        where = row["queue"] if stream is None else stream[1]
        waiting = (
            f"{row['lag']:,} {'message' if stream is None else 'window'}{'' if row['lag'] == 1 else 's'}"
        )
        verb = "waits" if row["lag"] == 1 else "wait"
        text = (
            f"Group {row['name']} of {where} has not acked anything for {in_words(silent)}; {waiting} {verb}."
        )
        if stream is None:
            found.append(Item("warning", "group_silent", text, "queue", row["queue"], since=since))
        else:
            found.append(Item("warning", "group_silent", text, "stream", stream[1], stream[0], since))
    return found


async def _dead_letters(broker: Broker) -> list[Item]:
    steps = await broker.store.samples.series(_RECENTLY_SECONDS)
    grown = steps[-1]["dead_letters"] - steps[0]["dead_letters"] if steps else 0
    if grown <= 0:
        return []
    text = f"{grown:,} new dead letter{'' if grown == 1 else 's'} in the last 15 minutes."
    return [Item("warning", "dead_letters", text, "dlq", since=steps[0]["at"])]


ROUTES = [
    Route(
        "GET",
        "/api/v1/attention",
        attention,
        "Problems that need attention",
        Right.KNOWN,
        {200: AttentionList},
    ),
]
