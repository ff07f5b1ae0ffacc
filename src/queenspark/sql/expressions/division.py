"""IEEE 754 division of floating-point numbers.

Polars divides a column by a constant through its reciprocal, which is off in the last bit for a third of all
numbers. So a constant divisor is turned into a column first.
"""

from __future__ import annotations

import polars as pl


def quotient(a: pl.Expr, b: pl.Expr) -> pl.Expr:
    """A / b of DOUBLEs. The sign of a zero divisor is lost; a division by zero is an error anyway."""
    if b.meta.root_names():
        return a / b
    if a.meta.root_names():
        return a / (b + a.is_null().cast(pl.Float64) * 0.0)
    dividend, divisor = pl.select(a.alias("a"), b.alias("b")).row(0)
    known = dividend is not None and divisor is not None and divisor != 0
    return pl.lit(dividend / divisor if known else None, dtype=pl.Float64)
