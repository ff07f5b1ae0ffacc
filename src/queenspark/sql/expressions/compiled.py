"""A compiled expression: a value for each row, or an error if it could not be computed.

Row errors are never raised here. Spark evaluates operands from left to right and stops at the first NULL or
error; `in_turn` selects the error that it would raise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from ..source import Span
from ..tree import Literal
from ..types import SqlType


class Compiled(NamedTuple):
    """An expression over columns. `error` is None if no row can fail."""

    value: pl.Expr
    type: SqlType
    error: pl.Expr | None = None
    literal: Literal | None = None

    def failing(self, error: pl.Expr | None) -> Compiled:
        """The same with another error."""
        return self._replace(error=error)


class Argument(NamedTuple):
    """An argument of a function, with its source location."""

    compiled: Compiled
    span: Span

    @property
    def value(self) -> pl.Expr:
        """Its value."""
        return self.compiled.value

    @property
    def type(self) -> SqlType:
        """Its type."""
        return self.compiled.type


def fail_where(condition: pl.Expr, message: str | pl.Expr) -> pl.Expr:
    """An error in the rows that satisfy the condition."""
    text = pl.lit(message) if isinstance(message, str) else message
    return pl.when(condition.fill_null(False)).then(text)


def first_error(*errors: pl.Expr | None) -> pl.Expr | None:
    """The first of several errors in each row."""
    given = [error for error in errors if error is not None]
    if not given:
        return None
    return given[0] if len(given) == 1 else pl.coalesce(given)


def in_turn(operands: Sequence[Compiled], own: pl.Expr | None = None) -> pl.Expr | None:
    """The error of a function that returns NULL at the first NULL operand, without evaluating the rest."""
    error = own
    for operand in reversed(operands):
        if error is not None and operand.error is not None:
            error = pl.coalesce(operand.error, pl.when(operand.value.is_not_null()).then(error))
        elif error is not None and operand is not operands[-1]:
            error = pl.when(operand.value.is_not_null()).then(error)
        else:
            error = first_error(operand.error, error)
    return error


def all_of(operands: Sequence[Compiled], own: pl.Expr | None = None) -> pl.Expr | None:
    """The error of a function that evaluates all of its operands."""
    return first_error(*(operand.error for operand in operands), own)
