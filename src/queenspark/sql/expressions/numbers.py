"""Functions on numbers."""

from __future__ import annotations

import polars as pl

from ..types import BIGINT, DOUBLE, INT, MOST_DIGITS, NULL, decimal
from .arithmetic import MOST_EXACT_DIGITS, arithmetic, cut_quotient
from .compiled import Argument, Compiled, all_of, fail_where, in_turn
from .conversion import same_type, widened
from .decimals import from_units, rounded, truncated, units
from .java_numbers import per_value, rounded_double
from .text import constant_number

_LIMIT = 2.0**63


def number(argument: Argument) -> Compiled:
    """An argument that must be a number."""
    if argument.type == NULL:
        return widened(argument.compiled, DOUBLE)
    if not argument.type.is_numeric:
        raise argument.span.error(f"expected a number, found {argument.type}; use CAST")
    return argument.compiled


def absolute(argument: Argument) -> Compiled:
    """ABS."""
    a = number(argument)
    if a.type.is_decimal:
        if a.type.precision > MOST_EXACT_DIGITS:
            raise argument.span.error(f"ABS of a {a.type} is not exact in Spark; CAST it to fewer digits")
        return Compiled(from_units(units(a.value, a.type, a.type.scale).abs(), a.type), a.type, a.error)
    if a.type.is_float:
        return Compiled(a.value.abs(), a.type, a.error)
    own = fail_where(a.value == a.type.least, f"{a.type} overflow in ABS")
    return Compiled(pl.when(a.value != a.type.least).then(a.value).abs(), a.type, in_turn([a], own))


def ceiling(argument: Argument) -> Compiled:
    """CEIL."""
    return _whole(argument, "CEIL")


def floor(argument: Argument) -> Compiled:
    """FLOOR."""
    return _whole(argument, "FLOOR")


def _whole(argument: Argument, name: str) -> Compiled:
    a = number(argument)
    if a.type.is_integer:
        return widened(a, BIGINT)
    if a.type.is_decimal:
        count = units(a.value, a.type, a.type.scale)
        cut = truncated(count, a.type.scale)
        unit = pl.lit(10**a.type.scale, dtype=pl.Int128)
        rest = count - cut * unit
        step = (rest > 0) if name == "CEIL" else (rest < 0)
        moved = cut + step.cast(pl.Int128) * (1 if name == "CEIL" else -1)
        kind = decimal(min(a.type.precision - a.type.scale + 1, MOST_DIGITS), 0) if a.type.scale else a.type
        return Compiled(from_units(moved, kind), kind, a.error)
    value = widened(a, DOUBLE).value
    whole = value.ceil() if name == "CEIL" else value.floor()
    own = fail_where(
        whole.is_not_nan() & ((whole >= _LIMIT) | (whole < -_LIMIT)), f"BIGINT overflow in {name}"
    )
    known = pl.when(whole.is_nan()).then(pl.lit(0.0)).otherwise(whole)  # as in Java
    return Compiled(known.cast(pl.Int64, strict=False), BIGINT, in_turn([a], own))


def round_half_up(argument: Argument, places: Argument | None = None) -> Compiled:
    """ROUND."""
    a = number(argument)
    digits = 0 if places is None else constant_number(places, "the number of places", 0, 15)
    if a.type.is_integer:
        return a
    if a.type.is_decimal:
        scale = min(digits, a.type.scale)
        precision = min(a.type.precision - a.type.scale + scale + 1, MOST_DIGITS)
        kind = decimal(precision, scale)
        count = rounded(units(a.value, a.type, a.type.scale), a.type.scale - scale)
        return Compiled(from_units(count, kind), kind, a.error)
    if a.type != DOUBLE:
        raise argument.span.error(f"ROUND of a {a.type} is not supported; CAST it to DOUBLE")
    return Compiled(per_value(a.value, rounded_double(digits), pl.Float64()), DOUBLE, a.error)


def sign(argument: Argument) -> Compiled:
    """SIGN."""
    a = widened(number(argument), DOUBLE)
    return Compiled(a.value.sign(), DOUBLE, a.error)


def square_root(argument: Argument) -> Compiled:
    """SQRT."""
    a = widened(number(argument), DOUBLE)
    return Compiled(a.value.sqrt(), DOUBLE, a.error)


def modulo(left: Argument, right: Argument) -> Compiled:
    """MOD: has the sign of the dividend."""
    return arithmetic("%", left.compiled, right.compiled, left.span)


def positive_modulo(left: Argument, right: Argument) -> Compiled:
    """PMOD of integers."""
    for each in (left, right):
        if not each.type.is_integer:
            raise each.span.error(f"PMOD needs whole numbers, found {each.type}; use CAST")
    a, b = same_type([left.compiled, right.compiled], left.span, "the arguments of PMOD")
    x, y = a.value.cast(pl.Int128), b.value.cast(pl.Int128)
    rest = x - cut_quotient(x, y) * y
    # Java's sum of INTs or BIGINTs overflows silently.
    sum_type = pl.Int64 if a.type.bits == 64 else pl.Int32
    again = (rest.cast(sum_type) + y.cast(sum_type)).cast(pl.Int128)
    value = pl.when(rest < 0).then(again - cut_quotient(again, y) * y).otherwise(rest)
    own = fail_where((y == 0) & x.is_not_null(), "division by zero")
    return Compiled(value.cast(a.type.column, strict=False), a.type, in_turn([b, a], own))


def greatest(*arguments: Argument) -> Compiled:
    """GREATEST: NULLs are ignored; NaN is the greatest."""
    return _extreme(arguments, most=True)


def least(*arguments: Argument) -> Compiled:
    """LEAST."""
    return _extreme(arguments, most=False)


def _extreme(arguments: tuple[Argument, ...], *, most: bool) -> Compiled:
    operands = same_type([each.compiled for each in arguments], arguments[0].span, "the arguments")
    kind = operands[0].type
    if kind == NULL:
        return widened(operands[0], INT)
    if kind.element is not None or kind.name == "INTERVAL":
        raise arguments[0].span.error(f"{kind} cannot be compared")
    values = [operand.value for operand in operands]
    if kind.is_float:
        best = _with_nan(values, most=most)
    else:
        best = pl.max_horizontal(values) if most else pl.min_horizontal(values)
    return Compiled(best, kind, all_of(operands))


def _with_nan(values: list[pl.Expr], *, most: bool) -> pl.Expr:
    """NaN is larger than every number, and the first of 0.0 and -0.0 wins."""
    has_nan = pl.any_horizontal([value.is_nan() for value in values])
    numbers = [value.fill_nan(None) for value in values]
    best = pl.max_horizontal(numbers) if most else pl.min_horizontal(numbers)
    first = pl.coalesce([pl.when(value == best).then(value) for value in numbers])
    return pl.when(has_nan if most else has_nan & best.is_null()).then(pl.lit(float("nan"))).otherwise(first)
