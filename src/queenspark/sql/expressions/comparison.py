"""`= <> < <= > >= <=>`, IS DISTINCT FROM, IN, BETWEEN. NaN equals itself and is larger than every number."""

from __future__ import annotations

import polars as pl

from ..source import Span
from ..types import BOOLEAN, INTERVAL
from .compiled import Compiled, all_of, in_turn
from .conversion import same_type
from .logic import conjunction, negation


def comparison(operator: str, left: Compiled, right: Compiled, span: Span) -> Compiled:
    """Compare two values of one type."""
    a, b = same_type([left, right], span, f"comparing ({operator})")
    if a.type.element is not None or a.type == INTERVAL:
        raise span.error(f"{a.type} cannot be compared")
    match operator:
        case "=":
            value = a.value == b.value
        case "<>":
            value = a.value != b.value
        case "<":
            value = a.value < b.value
        case "<=":
            value = a.value <= b.value
        case ">":
            value = a.value > b.value
        case ">=":
            value = a.value >= b.value
        case _:
            return Compiled(a.value.eq_missing(b.value), BOOLEAN, all_of([a, b]))
    return Compiled(value, BOOLEAN, in_turn([a, b]))


def membership(operand: Compiled, items: list[Compiled], span: Span, *, negated: bool) -> Compiled:
    """`x IN (…)`: NULL if there is no match and a NULL among the items."""
    value, *rest = same_type([operand, *items], span, "comparing (IN)")
    if value.type.element is not None or value.type == INTERVAL:
        raise span.error(f"{value.type} cannot be compared")
    found: pl.Expr = pl.lit(False)
    error: pl.Expr | None = None
    for item in rest:
        if item.error is not None:
            # Items behind a match are not looked at.
            late = pl.when(~found.fill_null(False)).then(item.error)
            error = late if error is None else pl.coalesce(error, late)
        found = found | (value.value == item.value)
    matched = Compiled(pl.when(value.value.is_not_null()).then(found), BOOLEAN, in_turn([value], error))
    if error is not None:
        matched = matched.failing(pl.coalesce(*_guarded(value, error)))
    return negation(matched, span) if negated else matched


def _guarded(value: Compiled, error: pl.Expr) -> list[pl.Expr]:
    late = pl.when(value.value.is_not_null()).then(error)
    return [late] if value.error is None else [value.error, late]


def between(operand: Compiled, low: Compiled, high: Compiled, span: Span, *, negated: bool) -> Compiled:
    """`x BETWEEN low AND high`."""
    both = conjunction(comparison(">=", operand, low, span), comparison("<=", operand, high, span), span)
    return negation(both, span) if negated else both
