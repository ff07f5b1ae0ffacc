"""The aggregate functions: arguments, result types, and where each may be used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from ..source import Span
from ..types import BIGINT, DOUBLE, INTERVAL, MOST_DIGITS, NULL, SqlType, array, decimal

Result = Callable[[SqlType, Span], SqlType]


class AggregateFunction(NamedTuple):
    """An aggregate function."""

    name: str
    signature: str
    doc: str
    least: int
    most: int
    result: Result
    where: Literal["anywhere", "final", "over"] = "anywhere"
    keeps_order: bool = False  # whether the order of the records matters


def _number(kind: SqlType, span: Span) -> SqlType:
    if not kind.is_numeric and kind != NULL:
        raise span.error(f"expected a number, found {kind}; use CAST")
    return kind


def _total(kind: SqlType, span: Span) -> SqlType:
    if _number(kind, span).is_decimal:
        return decimal(min(kind.precision + 10, MOST_DIGITS), kind.scale)
    return BIGINT if kind.is_integer else DOUBLE


def _mean(kind: SqlType, span: Span) -> SqlType:
    if _number(kind, span).is_decimal:
        if kind.precision + 4 > MOST_DIGITS:
            raise span.error(f"AVG of a {kind} needs more than {MOST_DIGITS} digits; CAST it to fewer")
        return decimal(kind.precision + 4, kind.scale + 4)
    return DOUBLE


def _double(kind: SqlType, span: Span) -> SqlType:
    _number(kind, span)
    return DOUBLE


def _same(kind: SqlType, span: Span) -> SqlType:
    return kind


def _ordered(kind: SqlType, span: Span) -> SqlType:
    if kind.element is not None or kind == INTERVAL:
        raise span.error(f"{kind} cannot be compared")
    return kind


def _list(kind: SqlType, span: Span) -> SqlType:
    return array(kind)


def _set(kind: SqlType, span: Span) -> SqlType:
    return array(_ordered(kind, span))


def _count(kind: SqlType, span: Span) -> SqlType:
    return BIGINT


_LIST = [
    AggregateFunction(
        "COUNT",
        "COUNT(*) | COUNT([DISTINCT] value)",
        "Number of records, or of values that are not NULL.",
        1,
        1,
        _count,
    ),
    AggregateFunction("SUM", "SUM(number)", "The sum; an overflow is an error.", 1, 1, _total),
    AggregateFunction("AVG", "AVG(number)", "The mean.", 1, 1, _mean),
    AggregateFunction("MIN", "MIN(value)", "The smallest value.", 1, 1, _ordered),
    AggregateFunction("MAX", "MAX(value)", "The largest value.", 1, 1, _ordered),
    AggregateFunction(
        "FIRST",
        "FIRST(value) [IGNORE NULLS]",
        "The first value in log order.",
        1,
        1,
        _same,
        keeps_order=True,
    ),
    AggregateFunction(
        "LAST",
        "LAST(value) [IGNORE NULLS]",
        "The last value in log order.",
        1,
        1,
        _same,
        keeps_order=True,
    ),
    AggregateFunction(
        "STDDEV_SAMP", "STDDEV_SAMP(number)", "The standard deviation of a sample.", 1, 1, _double
    ),
    AggregateFunction(
        "STDDEV_POP", "STDDEV_POP(number)", "The standard deviation of a population.", 1, 1, _double
    ),
    AggregateFunction("VAR_SAMP", "VAR_SAMP(number)", "The variance of a sample.", 1, 1, _double),
    AggregateFunction("VAR_POP", "VAR_POP(number)", "The variance of a population.", 1, 1, _double),
    AggregateFunction(
        "MIN_BY",
        "MIN_BY(value, order)",
        "The value in the record with the smallest order value.",
        2,
        2,
        _same,
    ),
    AggregateFunction(
        "MAX_BY", "MAX_BY(value, order)", "The value in the record with the largest order value.", 2, 2, _same
    ),
    AggregateFunction(
        "MEDIAN", "MEDIAN(number)", "The median; with EMIT FINAL.", 1, 1, _double, where="final"
    ),
    AggregateFunction(
        "PERCENTILE",
        "PERCENTILE(number, fraction)",
        "The value at a fraction (0 to 1) of the ordered values; with EMIT FINAL.",
        2,
        2,
        _double,
        where="final",
    ),
    AggregateFunction(
        "COLLECT_LIST",
        "COLLECT_LIST(value)",
        "All values that are not NULL; with EMIT FINAL.",
        1,
        1,
        _list,
        where="final",
        keeps_order=True,
    ),
    AggregateFunction(
        "COLLECT_SET",
        "COLLECT_SET(value)",
        "The distinct values, by first occurrence; with EMIT FINAL.",
        1,
        1,
        _set,
        where="final",
    ),
    AggregateFunction(
        "LAG",
        "LAG(value [, records])",
        "The value of an earlier record; with OVER.",
        1,
        2,
        _same,
        where="over",
        keeps_order=True,
    ),
]
ALIASES = {
    "FIRST_VALUE": "FIRST",
    "LAST_VALUE": "LAST",
    "STDDEV": "STDDEV_SAMP",
    "STD": "STDDEV_SAMP",
    "VARIANCE": "VAR_SAMP",
    "MEAN": "AVG",
}
AGGREGATES = {function.name: function for function in _LIST}
IGNORES_NULLS = ("FIRST", "LAST")
#: Aggregates that keep values, with a limit on their number.
KEEPS_VALUES = ("MEDIAN", "PERCENTILE", "COLLECT_LIST", "COLLECT_SET")


def find(name: str) -> AggregateFunction | None:
    """Find an aggregate by one of its names."""
    return AGGREGATES.get(ALIASES.get(name, name))
