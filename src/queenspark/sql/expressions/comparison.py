"""`= <> < <= > >= <=>`, IS DISTINCT FROM, IN, BETWEEN. NaN equals itself and is larger than every number."""

from __future__ import annotations

import polars as pl

from ..source import Span
from ..types import BOOLEAN, DATE, INTERVAL, TIMESTAMP
from .compiled import Compiled, all_of, in_turn
from .conversion import same_type
from .logic import conjunction, negation

#: Maximum number of IN items that are compared one by one.
MOST_ITEMS = 200


def comparison(operator: str, left: Compiled, right: Compiled, span: Span) -> Compiled:
    """Compare two values of one type."""
    a, b = same_type([left, right], span, f"the operands of {operator}")
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
    """`x IN (…)`: NULL if there is no match but a NULL among the items."""
    value, *rest = same_type([operand, *items], span, "the operands of IN")
    if value.type.element is not None or value.type == INTERVAL:
        raise span.error(f"{value.type} cannot be compared")
    constants = _constants(rest)
    if constants is not None:
        found = Compiled(_among(value.value, constants), BOOLEAN, value.error)
        return negation(found, span) if negated else found
    if len(rest) > MOST_ITEMS:
        raise span.error(
            f"IN has {len(rest)} items; at most {MOST_ITEMS} are allowed unless all are plain constants"
        )
    matched = _one_by_one(value, rest)
    return negation(matched, span) if negated else matched


def _constants(items: list[Compiled]) -> pl.Series | None:
    """The items as a column, if all are constants with bitwise equality."""
    kind = items[0].type
    plain = kind.is_integer or kind.is_text or kind in (BOOLEAN, DATE, TIMESTAMP)
    if not plain or any(item.error is not None or item.value.meta.root_names() for item in items):
        return None
    return pl.select(pl.concat_list([item.value for item in items]).alias("items"))["items"].explode()


def _among(value: pl.Expr, constants: pl.Series) -> pl.Expr:
    found = value.is_in(constants.drop_nulls().unique().implode())
    if constants.null_count():
        found = pl.when(found).then(pl.lit(True))  # otherwise it could be the NULL
    return pl.when(value.is_not_null()).then(found)


def _one_by_one(value: Compiled, rest: list[Compiled]) -> Compiled:
    found: pl.Expr = pl.lit(False)
    error: pl.Expr | None = None
    for item in rest:
        if item.error is not None:
            # Items after a match are not evaluated.
            late = pl.when(~found.fill_null(False)).then(item.error)
            error = late if error is None else pl.coalesce(error, late)
        found = found | (value.value == item.value)
    matched = Compiled(pl.when(value.value.is_not_null()).then(found), BOOLEAN, in_turn([value], error))
    if error is not None:
        matched = matched.failing(pl.coalesce(*_guarded(value, error)))
    return matched


def _guarded(value: Compiled, error: pl.Expr) -> list[pl.Expr]:
    late = pl.when(value.value.is_not_null()).then(error)
    return [late] if value.error is None else [value.error, late]


def between(operand: Compiled, low: Compiled, high: Compiled, span: Span, *, negated: bool) -> Compiled:
    """`x BETWEEN low AND high`."""
    both = conjunction(comparison(">=", operand, low, span), comparison("<=", operand, high, span), span)
    return negation(both, span) if negated else both
