"""The options of a query: validation, and the window spec derived from them."""

from __future__ import annotations

import msgspec

from ...windows import SpecError, WindowSpec
from ...windows.spec import Clock
from ..duration import duration_text, short_duration
from ..statements import COUNTED, Option
from .refusals import Shape

_LONGEST_RETENTION_US = 24_855 * 86_400_000_000  # seconds that fit into 32 bits
_ALWAYS = {"on_error", "start", "retention"}
_TIMED = {"grace", "idle_timeout", "late", "keep", "max_ahead"}


def check_options(shape: Shape, *, event_time: bool) -> dict[str, str]:
    """Return the options by name. Raises SqlError for one without effect."""
    window = shape.query.window
    timed = window is not None and window.kind not in COUNTED
    known = set(_ALWAYS)
    if shape.kind == "stateless":
        known.add("partition_by")
    if timed:
        known |= _TIMED if event_time else {"grace", "late", "keep"}
    if timed and window is not None and window.kind != "SESSION" and shape.emission == "final":
        known.add("emit_empty")
    counted = window is not None and window.kind in COUNTED
    # A key of a final group that was forgotten would have no row.
    grouped = shape.kind == "unwindowed" and shape.emission == "changes"
    if shape.kind == "rows" or grouped or counted:
        known.add("ttl")
    for option in shape.query.options:
        if option.name == "emit_empty" and shape.relation.kind == "files":
            raise option.span.error("emit_empty is not supported over files")
        if option.name not in known:
            raise option.span.error(
                f"{option.name} does not apply to this query: {_reason(option, event_time)}"
            )
        if option.name == "retention" and (_micros(option.value) or 0) > _LONGEST_RETENTION_US:
            most = duration_text(_LONGEST_RETENTION_US)
            raise option.span.error(f"retention is {option.value}; it must be at most {most}")
    return {option.name: option.value for option in shape.query.options}


def _reason(option: Option, event_time: bool) -> str:
    if option.name in ("idle_timeout", "max_ahead") and not event_time:
        return "its windows use push time; name a time in the WINDOW"
    reasons = {
        "partition_by": "its rows are partitioned by their key",
        "emit_empty": "only TUMBLING and SLIDING windows that are emitted FINAL can be empty",
        "ttl": "its state ends with its windows or its source, or it has none",
    }
    return reasons.get(option.name, "it has no time windows")


def window_spec(shape: Shape, options: dict[str, str], *, event_time: bool) -> WindowSpec | None:
    """Return the window spec for the engine. Raises SqlError."""
    # Rows of another job have their own event time, inherited by the rows of this one.
    clock: Clock = "event" if event_time or shape.relation.has_event_time else "ingest"
    ttl = _micros(options.get("ttl"))
    if shape.kind == "rows":
        rows = max(call.over.rows for call in shape.calls if call.over is not None)
        return WindowSpec(kind="rows", size=rows, emission="changes", clock=clock, ttl_us=ttl)
    if shape.kind == "unwindowed":
        return WindowSpec(kind="group", emission=shape.emission, clock=clock, ttl_us=ttl)
    window = shape.query.window
    if window is None:
        return None
    if window.kind == "ROWS":
        return WindowSpec(kind="rows", size=window.size, emission="changes", clock=clock, ttl_us=ttl)
    if window.kind == "COUNT":
        return WindowSpec(
            kind="count", size=window.size, step=window.step, emission=shape.emission, clock=clock, ttl_us=ttl
        )
    sizes = {
        "TUMBLING": {"duration_us": window.size},
        "SLIDING": {"duration_us": window.size, "slide_us": window.step},
        "SESSION": {"gap_us": window.size},
    }[window.kind]
    try:
        spec = WindowSpec(
            kind=window.kind.lower(),  # type: ignore[arg-type]
            clock="event" if event_time else "ingest",
            grace_us=_micros(options.get("grace")) or 0,
            idle_us=_micros(options.get("idle_timeout")),
            late=options.get("late", "process"),  # type: ignore[arg-type]
            emission=shape.emission,
            emit_empty=options.get("emit_empty") == "true",
            **sizes,
        )
    except SpecError as error:
        raise window.span.error(str(error)) from error
    keep = _micros(options.get("keep"))
    if keep is not None and spec.clock == "event" and keep < spec.idle:
        at = next(option for option in shape.query.options if option.name == "keep")
        least = duration_text(spec.idle)
        raise at.span.error(f"keep is {at.value}; it must be at least idle_timeout, {least}")
    return msgspec.structs.replace(spec, keep_us=keep)


def _micros(value: str | None) -> int | None:
    return None if value is None else short_duration(value)
