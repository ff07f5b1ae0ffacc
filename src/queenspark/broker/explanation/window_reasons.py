"""Reasons in the window itself: missing records, its end, its grace period, the event time of its key."""

from __future__ import annotations

from collections.abc import Iterator

from ...sql.duration import duration_text
from ...windows import WindowSpec
from ..window import shown_time
from .case import Case, Reason, counted, from_micros, to_micros
from .next_window import NextWindow
from .records import MOST_READ


def of_window(case: Case, *, is_blocked: bool) -> Iterator[Reason]:
    """Why the next window is open; `is_blocked`: something else holds it up anyway."""
    standing, spec = case.standing, case.spec
    if spec is None:
        if not is_blocked:
            text = "the job has no windows to seal: it emits a row with each record"
            yield Reason("no_windows", text, "push records that match its condition")
    elif not standing.open_windows:
        yield from _nothing_open(case, is_blocked=is_blocked)
    elif case.next is None:
        text = (
            f"{counted(standing.open_windows, 'window')} not sealed yet; "
            "the log does not show which one is next"
        )
        yield Reason("unknown", text, "wait for the next batch of the pipeline")
    elif spec.kind == "count":
        yield _count(case.next, spec)
    elif case.is_due and not is_blocked:
        text = f"{_window(case.next)} is due; the pipeline seals it with its next batch"
        fix = "wait a second; if it persists, check the log of the pipeline"
        yield Reason("sealing", text, fix)
    elif not case.is_due and spec.clock == "event":
        yield _watermark(case, case.next, spec)
    elif not case.is_due:
        yield _grace(case, case.next, spec)


def _nothing_open(case: Case, *, is_blocked: bool) -> Iterator[Reason]:
    standing = case.standing
    if is_blocked and any(source.unread or source.hidden for source in standing.sources):
        return
    taken = standing.records if case.is_job else standing.records - standing.dead
    queues = case.reads
    outside = standing.definition.body.reads
    if taken:
        text = "no window is open: all records that were read are in sealed windows, or were dropped as late"
        fix = f"push to {queues}: the next record opens a window"
        if outside is not None:
            fix = f"add records to {queues}: the next one opens a window"
        yield Reason("nothing_open", text, fix, standing.output.newest_at)
    elif standing.dead:
        why = "they failed" if case.is_job else "they have no usable event time"
        text = f"every record so far is dead ({counted(standing.dead, 'record')}): {why}"
        yield Reason("dead_records", text, f"list them with {_dead_route(case)}")
    elif outside is not None:
        text = f"no record of {queues} has arrived, or none passes the condition of the statement"
        yield Reason("no_records", text, f"add records to {queues}")
    elif not any(source.has_messages for source in standing.sources):
        yield Reason("no_records", f"no record has arrived: {queues} has no messages", f"push to {queues}")
    else:
        start = standing.definition.body.start
        text = (
            f"no record has arrived: messages in {queues} are before the start of the {case.noun} ({start})"
        )
        if case.is_job:
            text += ", or do not match the condition of its statement"
        yield Reason("no_records", text, f"push to {queues}, or define the {case.noun} with an earlier start")


def _dead_route(case: Case) -> str:
    if case.is_job:
        return f"`queenspark jobs dead {case.name}`"
    return f"GET /api/v1/resources/streams/{case.name}/dead"


def _count(window: NextWindow, spec: WindowSpec) -> Reason:
    missing = spec.rows - window.records
    text = f"the window of key {window.key} has {window.records:,} of {spec.rows:,} records"
    fix = f"push {counted(missing, 'more record')} of key {window.key}; other keys may need fewer"
    return Reason("count", text, fix)


def _grace(case: Case, window: NextWindow, spec: WindowSpec) -> Reason:
    assert window.end_us is not None
    assert window.due_us is not None
    now = to_micros(case.standing.now)
    if window.end_us > now:
        text = f"{_window(window)} has not ended yet; it ends at {shown_time(window.end_us)}"
    else:
        text = f"{_window(window)} has ended and waits for its grace of {_span(spec.grace_us)}"
    text += f", and is sealed at about {shown_time(window.due_us)}"
    if spec.kind == "session":
        text += f" unless more records arrive: a session ends after {_span(spec.gap)} of inactivity"
    fix = "wait, or redefine it with a shorter grace or shorter windows"
    return Reason("grace", text, fix, until=from_micros(window.due_us))


def _watermark(case: Case, window: NextWindow, spec: WindowSpec) -> Reason:
    assert window.end_us is not None
    assert window.due_us is not None
    needed = window.end_us + spec.grace_us
    text = (
        f"{_window(window)} waits for later event times of its key: the newest is "
        f"{shown_time(window.newest_us)}, and a record at {shown_time(needed)} or later "
        f"(its end plus the grace of {_span(spec.grace_us)}) seals it; otherwise it is sealed by inactivity "
        f"at about {shown_time(window.due_us)}"
    )
    if case.opened is not None and not case.opened.is_complete:
        text += (
            f". Only the first {MOST_READ:,} records since it began were checked, so its newest event time"
            " may be later"
        )
    fix = (
        f"push a record of key {window.key} with a later event time, or wait for the idle timeout "
        f"({_span(spec.idle)}), or redefine it with a shorter grace or idle timeout"
    )
    return Reason("watermark", text, fix, from_micros(window.pushed_us), from_micros(window.due_us))


def of_retention(case: Case) -> Iterator[Reason]:
    """Records that an open window will lack."""
    if case.opened is None or not case.opened.is_first_gone:
        return
    text = "the first record of the oldest open window was deleted from the log, by retention or manually"
    fix = (
        "set retentionSeconds to more than the time that windows stay open; this window is sealed without"
        " the record"
    )
    yield Reason("retention", text, fix)


def _window(window: NextWindow) -> str:
    assert window.end_us is not None
    return f"the window {shown_time(window.start_us)} to {shown_time(window.end_us)} of key {window.key}"


def _span(microseconds: int) -> str:
    return duration_text(microseconds) if microseconds else "0s"
