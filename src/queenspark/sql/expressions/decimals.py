"""DECIMALs as integers in their smallest unit: exact, and without polars errors."""

from __future__ import annotations

import polars as pl

from ..types import MOST_DIGITS, SqlType, as_decimal

_WIDE = pl.Int128


def units(value: pl.Expr, kind: SqlType, scale: int) -> pl.Expr:
    """A number as a count of 10^-scale; the scale is at least its own."""
    own = value.cast(_WIDE) if kind.is_integer else value.to_physical()
    shift = scale - as_decimal(kind).scale
    return own * pl.lit(10**shift, dtype=_WIDE) if shift else own


def from_units(count: pl.Expr, kind: SqlType) -> pl.Expr:
    """The DECIMAL of this count of its smallest unit; NULL if it has too many digits."""
    fits = count.abs() < pl.lit(
        10**kind.precision if kind.precision < MOST_DIGITS else 10**MOST_DIGITS, dtype=_WIDE
    )
    return (
        pl.when(fits)
        .then(count)
        .reinterpret(dtype=pl.Decimal(MOST_DIGITS, kind.scale))
        .cast(kind.column, strict=False)
    )


def too_long(count: pl.Expr, kind: SqlType) -> pl.Expr:
    """Whether a count has more digits than the type."""
    return count.abs() >= pl.lit(10**kind.precision, dtype=_WIDE)


def rounded(count: pl.Expr, drop: int) -> pl.Expr:
    """A count without its last digits, rounded half up (away from zero)."""
    if drop <= 0:
        return count
    unit = pl.lit(10**drop, dtype=_WIDE)
    half = pl.lit(10**drop // 2, dtype=_WIDE)
    return (count.abs() + half) // unit * count.sign()


def truncated(count: pl.Expr, drop: int) -> pl.Expr:
    """A count without its last digits, truncated."""
    return count.abs() // pl.lit(10**drop, dtype=_WIDE) * count.sign() if drop > 0 else count
