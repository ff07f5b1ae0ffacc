"""DATE and TIMESTAMP: years 1 to 9999, in UTC, to the microsecond."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

import polars as pl

from ...windows.gregorian import END_US, FIRST_US
from ..tree import Literal
from ..types import DATE, TIMESTAMP, SqlType
from .compiled import Compiled, fail_where, in_turn

DAY_US = 86_400_000_000
_OUTSIDE = "the time is outside the years 1 to 9999"
_TIME = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[T ](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?)?"
    r"(Z|[+-]\d{2}:\d{2})?)?"
)


def from_micros(micros: pl.Expr) -> pl.Expr:
    """Microseconds since 1970 as a TIMESTAMP."""
    return micros.cast(pl.Int64, strict=False).cast(pl.Datetime("us")).dt.replace_time_zone("UTC")


def outside(micros: pl.Expr) -> pl.Expr:
    """Whether a time is before year 1 or after year 9999."""
    return (micros < FIRST_US) | (micros >= END_US)


def checked_timestamp(micros: pl.Expr, operands: list[Compiled]) -> Compiled:
    """A TIMESTAMP computed from operands."""
    own = fail_where(outside(micros), _OUTSIDE)
    return Compiled(from_micros(pl.when(~outside(micros)).then(micros)), TIMESTAMP, in_turn(operands, own))


def shifted_date(day: Compiled, days: Compiled, sign: int) -> Compiled:
    """A DATE shifted by days."""
    number = day.value.cast(pl.Int32).cast(pl.Int64) + sign * days.value.cast(pl.Int64)
    wrong = outside(number * DAY_US)
    value = pl.when(~wrong).then(number).cast(pl.Int32).cast(pl.Date)
    return Compiled(value, DATE, in_turn([day, days], fail_where(wrong, _OUTSIDE)))


def date_literal(node: Literal) -> tuple[date, SqlType]:
    """`DATE '2026-01-31'`."""
    match = _TIME.fullmatch(node.text.strip())
    try:
        if match is None or match[4] is not None:
            raise ValueError
        return date(int(match[1]), int(match[2]), int(match[3])), DATE
    except ValueError:
        raise node.span.error(f"{node.text!r} is not a date; write DATE '2026-01-31'") from None


def timestamp_literal(node: Literal) -> tuple[datetime, SqlType]:
    """`TIMESTAMP '2026-01-31 12:00:00'`, in UTC unless it has an offset."""
    match = _TIME.fullmatch(node.text.strip())
    try:
        if match is None:
            raise ValueError
        numbers = [int(match[n] or 0) for n in range(1, 7)]
        micros = int((match[7] or "0").ljust(6, "0"))
        moment = datetime(*numbers, micros, tzinfo=UTC)  # type: ignore[misc,arg-type]
        return moment - _offset(match[8]), TIMESTAMP
    except (ValueError, OverflowError):
        raise node.span.error(f"{node.text!r} is not a time; write TIMESTAMP '2026-01-31 12:00:00'") from None


def _offset(text: str | None) -> timedelta:
    if text is None or text == "Z":
        return timedelta()
    size = timedelta(hours=int(text[1:3]), minutes=int(text[4:6]))
    return -size if text[0] == "-" else size
