"""The WINDOW clause."""

from __future__ import annotations

from .cursor import Cursor
from .expression_parser import MOST_ROWS, expression
from .source import Span
from .statements import COUNTED, Window
from .tokens import Kind
from .tree import Node

_KINDS = ("TUMBLING", "SLIDING", "HOPPING", "SESSION", "COUNT", "ROWS")
MOST_RECORDS = 1_000_000_000
_EXAMPLES = {"TUMBLING": "1h", "SESSION": "30s", "SLIDING": "1h, 5m", "HOPPING": "1h, 5m"}


def window(cursor: Cursor) -> Window:
    """Parse `WINDOW TUMBLING(at, 1m)` or another kind."""
    cursor.expect("WINDOW")
    span = cursor.span
    kind = cursor.choice(_KINDS, "a kind of window")
    cursor.expect("(")
    found = _counted(cursor, kind, span) if kind in COUNTED else _timed(cursor, kind, span)
    cursor.expect(")")
    return found


def _counted(cursor: Cursor, kind: str, span: Span) -> Window:
    time: Node | None = None
    if not cursor.at(Kind.NUMBER) and not cursor.sees_any((")", ",")):
        time = expression(cursor)
        cursor.expect(",")
    if kind == "ROWS":
        size = cursor.whole_number("the number of records", 1, MOST_ROWS)
        return Window(kind="ROWS", size=size, time=time, span=span)
    size = cursor.whole_number("the number of records", 1, MOST_RECORDS)
    step = None
    if cursor.takes(","):
        at = cursor.span
        step = cursor.whole_number("the step", 1, MOST_RECORDS)
        if step > size:
            raise at.error(f"the step ({step}) must not be larger than the number of records ({size})")
    return Window(kind="COUNT", size=size, step=step, time=time, span=span)


def _timed(cursor: Cursor, kind: str, span: Span) -> Window:
    time: Node | None = None
    if cursor.sees("SIZE"):
        raise cursor.error(f"sizes are written without a name here: {kind}({_EXAMPLES[kind]})")
    if not _sees_duration(cursor):
        time = expression(cursor)
        cursor.expect(",")
    names = {"TUMBLING": "the length of the window", "SESSION": "the gap of the session"}
    size = cursor.duration(names.get(kind, "the length of the window"))
    if kind == "TUMBLING" or kind == "SESSION":
        if cursor.sees(","):
            raise cursor.error(f"the time comes before the size: {kind}(at, {_EXAMPLES[kind]})")
        return Window(kind="TUMBLING" if kind == "TUMBLING" else "SESSION", size=size, time=time, span=span)
    cursor.expect(",")
    at = cursor.span
    slide = cursor.duration("the slide of the window")
    if slide > size:
        raise at.error(
            "the slide must not be longer than the window; use TUMBLING for windows without overlap"
        )
    return Window(kind="SLIDING", size=size, step=slide, time=time, span=span)


def _sees_duration(cursor: Cursor) -> bool:
    """Whether the first argument is a duration: `1d` and `30s` are numbers in expressions."""
    if cursor.sees("INTERVAL"):
        return True
    return cursor.sees_duration() and cursor.after().text in (",", ")")
