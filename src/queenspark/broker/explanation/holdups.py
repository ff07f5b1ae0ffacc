"""Reasons that can hold up any window: the pipeline, the job itself, and the log."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from ...store.standing import MOST_COUNTED, Standing
from ..times import iso_time
from .case import Case, Reason, counted

_TAKE_OVER_SECONDS = 10.0  # within which a standby takes over
_BEHIND_SECONDS = 5.0
_HELD_SECONDS = 1.0  # transactions of brokers and pipelines are shorter
_SAFE_SECONDS = 3.0  # normal lag of safe time is about a second


def of_pipeline(case: Case) -> Iterator[Reason]:
    """No pipeline is sealing windows."""
    standing, leader = case.standing, case.standing.leader
    if not leader.is_leading:
        since = leader.led_until or leader.heard_at
        if leader.epoch == 0 and since is None:
            text = "no pipeline is leading, and none has ever led"
        elif since is None:
            text = "no pipeline is leading"
        else:
            text = f"no pipeline has been leading since {iso_time(since)}"
            if (standing.now - since).total_seconds() < _TAKE_OVER_SECONDS:
                text += "; a standby, if one is running, takes over within seconds"
            else:
                text += ", and no standby has taken over, so none is running"
        fix = "start one with `queenspark pipeline`, or everything with `queenspark up`"
        yield Reason("no_pipeline", text, fix, since)
    elif leader.report.get("error"):
        text = f"the query of the pipeline {leader.holder} fails and is restarted: {leader.report['error']}"
        yield Reason("pipeline_failing", text, f"check the log of the pipeline {leader.holder}")
    elif not standing.is_known:
        created = standing.definition.created_at
        text = f"the pipeline has not loaded version {standing.definition.version} of the definition yet"
        fix = "wait for its next batch; if it persists, check the log of the pipeline"
        yield Reason("not_started", text, fix, created)


def of_job(case: Case) -> Iterator[Reason]:
    """The job is stopped, or waits for others."""
    standing, output = case.standing, case.standing.output
    gone = [source.queue for source in standing.sources if not source.is_there]
    if gone:
        text = f"the source {', '.join(gone)} does not exist: its queue was deleted"
        yield Reason("source_gone", text, f"redefine the {case.noun} with other sources, or delete it")
    if not case.is_job:
        return
    if standing.definition.body.paused:
        fix = f"resume it with `queenspark jobs resume {case.name}`"
        yield Reason("paused", "the job is paused", fix, output.paused_since)
    if output.error is not None:
        fix = f"remove the cause, then run `queenspark jobs restart {case.name}`"
        yield Reason("failed", f"the job has failed: {output.error}", fix, output.failed_at)
    if output.max_size and output.backlog >= output.max_size:
        text = (
            f"the queue {output.queue} is full: maxSize is {output.max_size}"
            f" and {output.backlog} rows are unconsumed"
        )
        fix = f"consume the rows of {output.queue}, or increase its maxSize"
        yield Reason("output_full", text, fix)


def of_run(case: Case) -> Iterator[Reason]:
    """A job with a query of its own has finished, or has not read everything."""
    run, report = case.standing.run, case.standing.run.get("report", {})
    if run.get("finishedAt") is not None:
        text = f"the job has finished: it has read all of {case.reads} and emitted every window"
        fix = f"create it again to read {case.reads} once more"
        yield Reason("finished", text, fix, datetime.fromisoformat(run["finishedAt"]))
        return
    left = report.get("filesLeft", 0), report.get("lagRecords", 0)
    texts = [
        f"{counted(number, noun)} of {case.reads} not read yet"
        for number, noun in zip(left, ("file", "record"), strict=True)
        if number
    ]
    if texts:
        since = report.get("unreadSince")
        fix = "wait while it catches up; if it falls behind further, give Spark more cores"
        yield Reason("behind", texts[0], fix, None if since is None else datetime.fromisoformat(since))


def of_log(case: Case) -> Iterator[Reason]:
    """The log is not readable far enough, or was not read yet."""
    standing = case.standing
    hidden = sum(source.hidden for source in standing.sources)
    is_held = bool(hidden) or case.is_safe_time_missing
    if is_held and case.holder is not None and (case.holder["seconds"] or 0.0) >= _HELD_SECONDS:
        yield open_transaction(case, case.holder)
    elif case.is_safe_time_missing and _is_safe_time_late(standing):
        yield _safe_time(case)
    times = [source.unread_since for source in standing.sources if source.unread_since is not None]
    if times and (standing.is_behind or _age(standing, min(times)) >= _BEHIND_SECONDS):
        unread = sum(source.unread for source in standing.sources)
        at_least = "at least " if any(each.unread == MOST_COUNTED for each in standing.sources) else ""
        seconds = _age(standing, min(times))
        text = f"it is {seconds:.0f} s behind: {at_least}{counted(unread, 'message')} unread"
        fix = "wait while it catches up; if the backlog grows, give Spark more cores"
        yield Reason("behind", text, fix, min(times))


def open_transaction(case: Case, holder: dict[str, Any]) -> Reason:
    """An open transaction holds the horizon back."""
    seconds = float(holder["seconds"] or 0.0)
    who = f"{holder['application'] or 'a session without an application name'} (pid {holder['pid']})"
    text = (
        f"an open transaction of {who}, {holder['state'] or 'state unknown'}, has held back the horizon "
        f"for {seconds:.0f} s"
    )
    hidden = sum(source.hidden for source in case.standing.sources)
    if hidden:
        text += f", and hides {counted(hidden, 'message')} pushed since then"
    fix = f"end it in its application, or with SELECT pg_terminate_backend({holder['pid']})"
    return Reason("open_transaction", text, fix, case.standing.now - timedelta(seconds=seconds))


def _is_safe_time_late(standing: Standing) -> bool:
    return standing.safe_time is None or _age(standing, standing.safe_time) >= _SAFE_SECONDS


def _safe_time(case: Case) -> Reason:
    standing = case.standing
    if standing.safe_time is None:
        text = "safe time is not known yet, so no time window can be sealed"
    else:
        late = (standing.now - standing.safe_time).total_seconds()
        text = f"safe time is {iso_time(standing.safe_time)}, {late:.1f} s behind the clock"
    text += "; no open transaction visible to this broker explains it"
    fix = (
        "wait a second; if it persists, check pg_prepared_xacts, and GRANT pg_read_all_stats to the "
        "broker's database user"
    )
    return Reason("safe_time", text, fix, standing.safe_time)


def _age(standing: Standing, since: datetime) -> float:
    return max(0.0, (standing.now - since).total_seconds())
