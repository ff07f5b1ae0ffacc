"""The aggregates: their arguments, their result types, and where each one may stand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from ..source import Span
from ..types import BIGINT, DOUBLE, INTERVAL, MOST_DIGITS, NULL, SqlType, array, decimal

Result = Callable[[SqlType, Span], SqlType]


class AggregateFunction(NamedTuple):
    """An aggregate function."""

    name: str
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


def _count(kind: SqlType, span: Span) -> SqlType:
    return BIGINT


_LIST = [
    AggregateFunction("COUNT", 1, 1, _count),
    AggregateFunction("SUM", 1, 1, _total),
    AggregateFunction("AVG", 1, 1, _mean),
    AggregateFunction("MIN", 1, 1, _ordered),
    AggregateFunction("MAX", 1, 1, _ordered),
    AggregateFunction("FIRST", 1, 1, _same, keeps_order=True),
    AggregateFunction("LAST", 1, 1, _same, keeps_order=True),
    AggregateFunction("STDDEV_SAMP", 1, 1, _double),
    AggregateFunction("STDDEV_POP", 1, 1, _double),
    AggregateFunction("VAR_SAMP", 1, 1, _double),
    AggregateFunction("VAR_POP", 1, 1, _double),
    AggregateFunction("MIN_BY", 2, 2, _same),
    AggregateFunction("MAX_BY", 2, 2, _same),
    AggregateFunction("MEDIAN", 1, 1, _double, where="final"),
    AggregateFunction("PERCENTILE", 2, 2, _double, where="final"),
    AggregateFunction("COLLECT_LIST", 1, 1, _list, where="final", keeps_order=True),
    AggregateFunction("COLLECT_SET", 1, 1, _list, where="final"),
    AggregateFunction("LAG", 1, 2, _same, where="over", keeps_order=True),
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


def find(name: str) -> AggregateFunction | None:
    """An aggregate by one of its names."""
    return AGGREGATES.get(ALIASES.get(name, name))
