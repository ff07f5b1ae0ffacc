"""AND, OR, NOT and IS in three-valued logic. The right side is not evaluated if the left side decides."""

from __future__ import annotations

import polars as pl

from ..source import Span
from ..types import BOOLEAN, NULL
from .compiled import Compiled, first_error
from .conversion import widened


def truth(operand: Compiled, span: Span, what: str) -> Compiled:
    """A condition; raises SqlError for other types."""
    if operand.type not in (BOOLEAN, NULL):
        raise span.error(f"{what} needs a BOOLEAN, found {operand.type}; write a comparison")
    return widened(operand, BOOLEAN)


def conjunction(left: Compiled, right: Compiled, span: Span) -> Compiled:
    """`a AND b`."""
    a, b = truth(left, span, "AND"), truth(right, span, "AND")
    late = None if b.error is None else pl.when(a.value.fill_null(True)).then(b.error)
    return Compiled(a.value & b.value, BOOLEAN, first_error(a.error, late))


def disjunction(left: Compiled, right: Compiled, span: Span) -> Compiled:
    """`a OR b`."""
    a, b = truth(left, span, "OR"), truth(right, span, "OR")
    late = None if b.error is None else pl.when(~a.value.fill_null(False)).then(b.error)
    return Compiled(a.value | b.value, BOOLEAN, first_error(a.error, late))


def negation(operand: Compiled, span: Span) -> Compiled:
    """`NOT a`."""
    a = truth(operand, span, "NOT")
    return Compiled(~a.value, BOOLEAN, a.error)


def is_test(operand: Compiled, what: str, span: Span, *, negated: bool) -> Compiled:
    """`a IS [NOT] NULL | TRUE | FALSE`; never NULL."""
    if what == "NULL":
        value = operand.value.is_not_null() if negated else operand.value.is_null()
        return Compiled(value, BOOLEAN, operand.error)
    a = truth(operand, span, f"IS {what}")
    value = (a.value if what == "TRUE" else ~a.value).fill_null(False)
    return Compiled(~value if negated else value, BOOLEAN, a.error)
