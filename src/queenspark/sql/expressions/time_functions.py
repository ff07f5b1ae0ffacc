"""Functions on times."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from ..types import BIGINT, DATE, INT, NULL, TIMESTAMP
from .casts import cast
from .compiled import Argument, Compiled, fail_where, in_turn
from .conversion import widened
from .text import constant_string, string, whole
from .times import checked_timestamp, shifted_date

_UNITS = {
    "YEAR": "1y", "YYYY": "1y", "YY": "1y", "QUARTER": "1q", "MONTH": "1mo", "MM": "1mo", "MON": "1mo",
    "WEEK": "1w", "DAY": "1d", "DD": "1d", "HOUR": "1h", "MINUTE": "1m", "SECOND": "1s", "MILLISECOND": "1ms",
    "MICROSECOND": "1us",
}  # fmt: skip


def day_of(argument: Argument) -> Compiled:
    """An argument that must be a DATE; a TIMESTAMP is converted."""
    if argument.type in (NULL, DATE):
        return widened(argument.compiled, DATE)
    if argument.type == TIMESTAMP:
        return cast(argument.compiled, DATE, argument.span)
    raise argument.span.error(f"expected a DATE or TIMESTAMP, found {argument.type}; use CAST")


def moment_of(argument: Argument) -> Compiled:
    """An argument that must be a TIMESTAMP; a DATE is converted."""
    if argument.type in (NULL, DATE, TIMESTAMP):
        return widened(argument.compiled, TIMESTAMP)
    raise argument.span.error(f"expected a TIMESTAMP, found {argument.type}; use CAST or TIMESTAMP_MILLIS")


def date_part(part: Callable[[pl.Expr], pl.Expr]) -> Callable[[Argument], Compiled]:
    """YEAR, MONTH and so on."""

    def function(argument: Argument) -> Compiled:
        a = day_of(argument)
        return Compiled(part(a.value).cast(pl.Int32), INT, a.error)

    return function


def clock_part(part: Callable[[pl.Expr], pl.Expr]) -> Callable[[Argument], Compiled]:
    """HOUR, MINUTE, SECOND."""

    def function(argument: Argument) -> Compiled:
        a = moment_of(argument)
        return Compiled(part(a.value).cast(pl.Int32), INT, a.error)

    return function


year = date_part(lambda day: day.dt.year())
quarter = date_part(lambda day: day.dt.quarter())
month = date_part(lambda day: day.dt.month())
day = date_part(lambda day: day.dt.day())
day_of_year = date_part(lambda day: day.dt.ordinal_day())
day_of_week = date_part(lambda day: day.dt.weekday().cast(pl.Int32) % 7 + 1)
week = date_part(lambda day: day.dt.week())
hour = clock_part(lambda moment: moment.dt.hour())
minute = clock_part(lambda moment: moment.dt.minute())
second = clock_part(lambda moment: moment.dt.second())


def last_day(argument: Argument) -> Compiled:
    """LAST_DAY of the month."""
    a = day_of(argument)
    return Compiled(a.value.dt.month_end(), DATE, a.error)


def date_trunc(unit: Argument, moment: Argument) -> Compiled:
    """DATE_TRUNC."""
    name = constant_string(unit, "the unit").upper()
    if name not in _UNITS:
        raise unit.span.error(f"{name!r} is not a unit; use one of {', '.join(_UNITS)}")
    a = moment_of(moment)
    return Compiled(a.value.dt.truncate(_UNITS[name]), TIMESTAMP, a.error)


def _since_1970(size: int) -> Callable[[Argument], Compiled]:
    def function(argument: Argument) -> Compiled:
        if argument.type == DATE:
            raise argument.span.error("expected a TIMESTAMP, found DATE; use CAST")
        a = moment_of(argument)
        return Compiled(a.value.dt.epoch("us") // size, BIGINT, a.error)

    return function


unix_micros = _since_1970(1)
unix_millis = _since_1970(1_000)
unix_seconds = _since_1970(1_000_000)


def _from_1970(size: int) -> Callable[[Argument], Compiled]:
    def function(argument: Argument) -> Compiled:
        if argument.type != NULL and not argument.type.is_integer:
            raise argument.span.error(f"expected a whole number, found {argument.type}; use CAST")
        a = widened(argument.compiled, BIGINT)
        return checked_timestamp(a.value.cast(pl.Int128) * size, [a])

    return function


timestamp_micros = _from_1970(1)
timestamp_millis = _from_1970(1_000)
timestamp_seconds = _from_1970(1_000_000)


def to_timestamp(text: Argument) -> Compiled:
    """TO_TIMESTAMP of a string without a format."""
    return cast(string(text), TIMESTAMP, text.span)


def to_date(text: Argument) -> Compiled:
    """TO_DATE of a string without a format, or of a TIMESTAMP."""
    if text.type in (DATE, TIMESTAMP):
        return day_of(text)
    return cast(string(text), DATE, text.span)


def date_add(start: Argument, days: Argument) -> Compiled:
    """DATE_ADD."""
    return shifted_date(day_of(start), whole(days), 1)


def date_sub(start: Argument, days: Argument) -> Compiled:
    """DATE_SUB."""
    return shifted_date(day_of(start), whole(days), -1)


def date_diff(end: Argument, start: Argument) -> Compiled:
    """DATEDIFF in days."""
    a, b = day_of(end), day_of(start)
    value = a.value.cast(pl.Int32) - b.value.cast(pl.Int32)
    return Compiled(value, INT, in_turn([a, b]))


def make_date(years: Argument, months: Argument, days: Argument) -> Compiled:
    """MAKE_DATE."""
    a, b, c = whole(years), whole(months), whole(days)
    y, m, d = a.value, b.value, c.value
    leap = ((y % 4 == 0) & (y % 100 != 0)) | (y % 400 == 0)
    short = (
        pl.when(m == 2).then(28 + leap.cast(pl.Int32)).otherwise(31 - m.is_in([4, 6, 9, 11]).cast(pl.Int32))
    )
    possible = y.is_between(1, 9999) & m.is_between(1, 12) & (d >= 1) & (d <= short)
    present = y.is_not_null() & m.is_not_null() & d.is_not_null()
    value = pl.when(possible).then(
        pl.date(pl.when(possible).then(y), pl.when(possible).then(m), pl.when(possible).then(d))
    )
    own = fail_where(present & ~possible, "MAKE_DATE: there is no such day in the years 1 to 9999")
    return Compiled(value, DATE, in_turn([a, b, c], own))
