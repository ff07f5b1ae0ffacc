"""A compiled expression as a sequence of columns.

A function uses its operands several times: for the value, for its NULLs, for errors. As one expression, a
chain of functions would double with every link. So each part becomes a column, computed once and shared by
equal parts of several expressions.
"""

from __future__ import annotations

import polars as pl

from .compiled import Compiled


class Program:
    """The intermediate columns of expressions, in order of creation."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._known: dict[str, Compiled] = {}
        self._levels: list[list[pl.Expr]] = []
        self._level_of: dict[str, int] = {}

    def known(self, text: str) -> Compiled | None:
        """Return an expression that is already compiled."""
        return self._known.get(text)

    def bind(self, text: str, compiled: Compiled) -> Compiled:
        """Bind an expression to a column, or fold a constant."""
        if not _columns(compiled):
            bound = _folded(compiled)
        else:
            name = f"{self._prefix}{len(self._known)}"
            self._add(name, compiled.value)
            error = None
            if compiled.error is not None:
                self._add(f"{name}!", compiled.error)
                error = pl.col(f"{name}!")
            bound = Compiled(pl.col(name), compiled.type, error)
        self._known[text] = bound
        return bound

    def apply(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Add the columns to a frame."""
        for level in self._levels:
            frame = frame.with_columns(level)
        return frame

    def _add(self, name: str, expression: pl.Expr) -> None:
        level = 1 + max((self._level_of.get(root, -1) for root in expression.meta.root_names()), default=-1)
        while len(self._levels) <= level:
            self._levels.append([])
        self._levels[level].append(expression.alias(name))
        self._level_of[name] = level


def _columns(compiled: Compiled) -> bool:
    expressions = [compiled.value] if compiled.error is None else [compiled.value, compiled.error]
    return any(expression.meta.root_names() for expression in expressions)


def _folded(compiled: Compiled) -> Compiled:
    """Evaluate a constant expression."""
    error = pl.lit(None, dtype=pl.String) if compiled.error is None else compiled.error
    row = pl.select(value=compiled.value, error=error)
    message = row["error"][0]
    constant = (
        pl.lit(row["value"]).first()
        if compiled.type.element is not None
        else pl.lit(row["value"][0], dtype=compiled.type.column)
    )
    return Compiled(constant, compiled.type, None if message is None else pl.lit(message))
