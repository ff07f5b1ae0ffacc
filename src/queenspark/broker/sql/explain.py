"""EXPLAIN: where each part of a query runs, and why, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...sql import Plan
from ...sql.duration import duration_text
from ...sql.expression_text import expression_text
from ...sql.options import without_secrets
from ...sql.statements import CreateSource, Select
from ...store.definitions import Outside
from ...windows import WindowSpec
from .catalogue import outside_of
from .planner import Planned, job_start


def explained(planned: Planned, query: Select, name: str | None, writes: Outside | None = None) -> list[str]:
    """Return the lines; `name` is the job's, None for a SELECT, and `writes` its sink."""
    return list(_lines(planned, query, name, writes))


def _lines(planned: Planned, query: Select, name: str | None, writes: Outside | None) -> Iterator[str]:
    plan, source = planned.plan, planned.source.source
    what = f"job {name}" if name is not None else "temporary job, which ends with the request"
    if source is None:
        yield (
            f"{what}: in the pipeline's shared streams query, because it reads queues"
            if writes is None
            else f"{what}: in its own Spark query, because it writes to an external system"
        )
        yield f"source: {_source(plan, planned.source.queues)}, from {_start(plan)}"
        yield f"records, in the tasks that read the log: {_decoded(plan)}"
    else:
        yield f"{what}: in its own Spark query, because it reads an external source"
        yield f"source: {_outside(source)}, from {job_start(query, planned.source)}"
        yield f"records, in the tasks that read the source: {_decoded(plan)}"
    if query.where is not None:
        yield f"  condition: {expression_text(query.where)}; only matching records advance clocks and counts"
    if plan.kind != "stateless":
        yield f"  key: {_key(plan)}"
    yield from _windows(plan, query)
    yield "rows:"
    if query.having is not None:
        yield f"  having: {expression_text(query.having)}"
    yield f"  columns: {_columns(plan)}"
    yield f"  emitted: {_emission(plan)}"
    if writes is not None:
        folder = ", in a folder of its version" if "path" in writes.options else ""
        yield f"output: {writes.connector} of {_location(writes)}{folder}"
    else:
        yield (
            f"output: queue {name}, {_partition(plan)}"
            if name
            else f"output: the response, {_partition(plan)}"
        )
    yield _kind(plan)
    for default in _defaults(plan, source):
        yield f"default: {default}"
    for warning in plan.warnings:
        yield f"warning: {warning}"


def _outside(source: CreateSource) -> str:
    outside = outside_of(source)
    ends = "; the job ends when all of it is read" if outside.options.get("mode") == "once" else ""
    return f"{outside.name}, {outside.connector} of {_location(outside)}{ends}"


def _location(outside: Outside) -> str:
    options = without_secrets(outside.options)
    return options.get("path") or f"topic {options.get('topic')} of {options.get('brokers')}"


def _span(microseconds: int) -> str:
    return duration_text(microseconds) if microseconds else "0s"


def _source(plan: Plan, queues: Sequence[str]) -> str:
    relation = plan.relation
    match relation.kind:
        case "schema":
            noun = "queue" if len(queues) == 1 else "queues"
            return f"{relation.name}, declared over {noun} {', '.join(queues)}"
        case "stream":
            return f"the rows of job {relation.name}"
        case _:
            return f"queue {relation.name}, with types from its newest messages"


def _start(plan: Plan) -> str:
    start = plan.options.get("start", "earliest")
    return {"earliest": "the earliest retained message", "latest": "now on"}.get(start, start)


def _decoded(plan: Plan) -> str:
    if plan.rows.whole_payload:
        return "the payload is passed through unchanged" + (
            f"; decoded columns {_fields(plan)}" if plan.records.fields else ""
        )
    if not plan.records.fields:
        return "no payload fields are decoded"
    return f"decoded columns {_fields(plan)}"


def _fields(plan: Plan) -> str:
    return ", ".join(f"{field} {field.type}" for field in plan.records.fields)


def _key(plan: Plan) -> str:
    names = [name.removeprefix("key:") for name, _ in plan.records.key]
    return ", ".join(names) if names else "none: all records have one key"


def _windows(plan: Plan, query: Select) -> Iterator[str]:
    if plan.kind == "stateless":
        return
    yield "state, in the bucket of the key:"
    spec = plan.window
    if spec is None or spec.kind == "group":
        yield f"  aggregates since the start, {_kept(plan)}"
    elif spec.kind == "rows":
        yield f"  the last {spec.rows} records of each key, {_kept(plan)}"
    elif spec.kind == "count":
        yield f"  windows: {_shape(spec)}, {_kept(plan)}"
    else:
        yield f"  windows: {_shape(spec)}"
        yield f"  clock: {_clock(plan, query, spec)}"
    if plan.aggregates:
        yield f"  aggregates: {', '.join(f'{each.name} {each.type}' for each in plan.aggregates)}"


def _kept(plan: Plan) -> str:
    ttl = plan.options.get("ttl")
    return f"kept until the key is idle for {ttl}" if ttl else "kept without limit"


def _shape(spec: WindowSpec) -> str:
    match spec.kind:
        case "tumbling":
            return f"tumbling, {_span(spec.duration)} long"
        case "sliding":
            return f"sliding, {_span(spec.duration)} long, every {_span(spec.slide)}"
        case "session":
            return f"sessions that end after {_span(spec.gap)} of inactivity"
        case _:
            return f"{spec.rows} records of a key, every {spec.each}"


def _clock(plan: Plan, query: Select, spec: WindowSpec) -> str:
    if spec.clock == "ingest":
        return f"push time; sealed {_span(spec.grace_us)} after their end, nothing is late"
    time = query.window.time if query.window is not None else None
    which = "the time of the rows" if time is None else expression_text(time)
    return (
        f"{which}, for each key; sealed when a record of the key is {_span(spec.grace_us)} "
        f"past their end, or the key is idle for {_span(spec.idle)}"
    )


def _columns(plan: Plan) -> str:
    if plan.rows.whole_payload:
        return "the payload"
    return ", ".join(f"{name} {kind}" for name, kind in plan.columns.items())


def _emission(plan: Plan) -> str:
    if plan.kind == "stateless":
        return "one per matching record"
    if plan.kind == "rows" or plan.emission == "changes":
        return "one per record, with the current aggregates"
    if plan.kind == "unwindowed":
        return "one per key when the source is read to its end"
    spec = plan.window
    if spec is not None and spec.kind == "count":
        return "one per full window"
    late = {
        "drop": "late records are dropped and counted",
        "warn": "late records produce a revision and are listed",
    }
    how = late.get(spec.late if spec is not None else "", "late records produce a revision")
    return f"one per key and window when it is sealed; {how}"


def _partition(plan: Plan) -> str:
    if plan.kind != "stateless":
        return "partition by the key"
    by = plan.options.get("partition_by")
    return f"partition by {by}" if by else "partition of the record"


def _kind(plan: Plan) -> str:
    if plan.updating:
        return "kind: updating, later rows replace earlier ones; GROUP BY, WINDOW and OVER cannot read them"
    return "kind: append, every row is final"


def _defaults(plan: Plan, source: CreateSource | None) -> Iterator[str]:
    spec, given = plan.window, set(plan.options)
    if source is not None:
        given |= {option.name for option in source.options}
    if spec is not None and spec.kind in ("tumbling", "sliding", "session"):
        values = {"grace": _span(spec.grace_us), "late": spec.late, "keep": _span(spec.keep)}
        if spec.clock == "event":
            values |= {"idle_timeout": _span(spec.idle), "max_ahead": "1d"}
        yield from (f"{name} = '{value}'" for name, value in values.items() if name not in given)
    yield from (
        f"{name} = '{value}'"
        for name, value in (("start", "earliest"), ("on_error", "dead_letter"))
        if name not in given
    )
