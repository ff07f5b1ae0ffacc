"""Java's formatting and rounding of floating-point numbers: `1.0E7`, half up on the decimal digits."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from math import isfinite
from typing import Any

import polars as pl

_EXACT = Context(prec=2_000, rounding=ROUND_HALF_UP)


def per_value(column: pl.Expr, function: Callable[[Any], Any], kind: pl.DataType) -> pl.Expr:
    """Apply a function to each value: for the few conversions that differ from polars."""

    def apply(values: pl.Series) -> pl.Series:
        return pl.Series(
            values.name, [None if v is None else function(v) for v in values.to_list()], dtype=kind
        )

    return column.map_batches(apply, return_dtype=kind, is_elementwise=True)


def double_text(value: float) -> str:
    """Format a DOUBLE as Java's Double.toString does."""
    return _text(value, repr(value))


def float_text(value: float) -> str:
    """Format a FLOAT as Java's Float.toString does."""
    return _text(value, _shortest_float(value))


def _text(value: float, shortest: str) -> str:
    if not isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return shortest if "." in shortest else f"{shortest}.0"
    size = abs(value)
    if _digits(shortest) == 1:  # Java uses two digits, the nearest ones
        shortest = f"{value:.1e}"
    sign, digits, exponent = Decimal(shortest).normalize(_EXACT).as_tuple()
    assert isinstance(exponent, int)
    figures = "".join(map(str, digits))
    point = len(figures) + exponent  # digits before the decimal point
    if 1e-3 <= size < 1e7:
        if point <= 0:
            text = "0." + "0" * -point + figures
        else:
            text = figures[:point].ljust(point, "0") + "." + (figures[point:] or "0")
    else:
        text = f"{figures[0]}.{figures[1:] or '0'}E{point - 1}"
    return "-" + text if sign else text


def _digits(text: str) -> int:
    return len(Decimal(text).normalize(_EXACT).as_tuple().digits)


def _shortest_float(value: float) -> str:
    """The shortest digits that identify this FLOAT."""
    if not isfinite(value) or value == 0:
        return repr(value)
    for precision in range(1, 10):
        text = f"{value:.{precision}g}"
        if _as_float(float(text)) == value:
            return text
    return repr(value)


def _as_float(value: float) -> float:
    return float(pl.Series([value], dtype=pl.Float64).cast(pl.Float32)[0])


def rounded_double(places: int) -> Callable[[float], float]:
    """Round half up on the digits of Java's formatting."""
    unit = Decimal(1).scaleb(-places)

    def round_one(value: float) -> float:
        if not isfinite(value):
            return value
        exact = Decimal(repr(value))
        if exact.as_tuple().exponent >= -places:  # type: ignore[operator]
            return value + 0.0
        return float(exact.quantize(unit, context=_EXACT)) + 0.0  # never -0.0

    return round_one
