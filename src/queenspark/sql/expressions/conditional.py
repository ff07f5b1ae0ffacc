"""CASE, IF, COALESCE, NULLIF: a branch not taken cannot fail."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ..source import Span
from ..types import BOOLEAN, NULL
from .comparison import comparison
from .compiled import Compiled, first_error
from .conversion import same_type
from .logic import truth


def choice(branches: Sequence[tuple[Compiled, Compiled]], otherwise: Compiled | None, span: Span) -> Compiled:
    """The value of the first branch with a true condition."""
    last = otherwise or Compiled(pl.lit(None), NULL)
    *values, last = same_type([*(value for _, value in branches), last], span, "the results")
    value, error = last.value, last.error
    for (condition, _), result in reversed(list(zip(branches, values, strict=True))):
        holds = truth(condition, span, "a condition")
        taken = holds.value.fill_null(False)
        value = pl.when(taken).then(result.value).otherwise(value)
        if error is not None or result.error is not None:
            nothing = pl.lit(None, dtype=pl.String)
            error = (
                pl.when(taken)
                .then(nothing if result.error is None else result.error)
                .otherwise(nothing if error is None else error)
            )
        error = first_error(holds.error, error)
    return Compiled(value, last.type, error)


def coalesced(operands: list[Compiled], span: Span) -> Compiled:
    """The first non-NULL value."""
    *rest, last = same_type(operands, span, "the results")
    value, error = last.value, last.error
    for operand in reversed(rest):
        missing = operand.value.is_null()
        value = pl.when(missing).then(value).otherwise(operand.value)
        error = first_error(operand.error, None if error is None else pl.when(missing).then(error))
    return Compiled(value, last.type, error)


def null_if(left: Compiled, right: Compiled, span: Span) -> Compiled:
    """NULL if both are equal, else the first."""
    equal = comparison("=", left, right, span)
    value = pl.when(~equal.value.fill_null(False)).then(left.value)
    return Compiled(value, left.type, equal.error)


def missing(operand: Compiled) -> Compiled:
    """Whether a value is NULL."""
    return Compiled(operand.value.is_null(), BOOLEAN, operand.error)
