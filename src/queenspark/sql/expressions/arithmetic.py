"""`+ - * / % DIV` and signs, with Spark's result types; an overflow is an error."""

from __future__ import annotations

import polars as pl

from ..source import Span
from ..tree import Literal
from ..types import (
    BIGINT,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    MOST_DIGITS,
    NULL,
    TIMESTAMP,
    SqlType,
    as_decimal,
    common,
    decimal,
)
from .compiled import Compiled, fail_where, in_turn
from .conversion import widened
from .decimals import from_units, rounded, too_long, units
from .division import quotient
from .times import checked_timestamp, shifted_date

_WIDE = pl.Int128
#: Spark rounds the negation of longer DECIMALs.
MOST_EXACT_DIGITS = 34
_ZERO = "division by zero"


def arithmetic(operator: str, left: Compiled, right: Compiled, span: Span) -> Compiled:
    """Compile a binary operation on numbers, or on a time and an interval."""
    if operator in "+-" and {left.type, right.type} & {DATE, TIMESTAMP, INTERVAL}:
        return _time_sum(operator, left, right, span)
    for operand in (left, right):
        if not operand.type.is_numeric and operand.type != NULL:
            raise span.error(f"{operator} needs numbers, found {operand.type}; use CAST")
    if left.type == NULL or right.type == NULL:
        other = right if left.type == NULL else left
        kind = INT if other.type == NULL else other.type
        left, right = (widened(each, kind) if each.type == NULL else each for each in (left, right))
    if left.type.is_float or right.type.is_float:
        return _floats(operator, left, right, span)
    if left.type.is_decimal or right.type.is_decimal:
        return _decimals(operator, left, right, span)
    if operator == "/":
        return _floats(operator, left, right, span)
    return _integers(operator, left, right)


def negative(operand: Compiled, span: Span) -> Compiled:
    """Compile a negation."""
    kind = operand.type
    if kind == INTERVAL:
        return Compiled(-operand.value, kind, operand.error)
    if not kind.is_numeric:
        raise span.error(f"- needs a number, found {kind}; use CAST")
    if kind.is_decimal:
        if kind.precision > MOST_EXACT_DIGITS:
            raise span.error(f"- of a {kind} is not exact in Spark; CAST it to fewer digits, or write 0 - x")
        return Compiled(from_units(0 - units(operand.value, kind, kind.scale), kind), kind, operand.error)
    if kind.is_float:
        return Compiled(-operand.value, kind, operand.error)
    own = fail_where(operand.value == kind.least, f"{kind} overflow in a negation")
    return Compiled(-operand.value, kind, in_turn([operand], own))


def _floats(operator: str, left: Compiled, right: Compiled, span: Span) -> Compiled:
    same = left.type == right.type and left.type.is_float and operator != "/"
    kind = left.type if same else DOUBLE
    if operator in ("%", "DIV"):
        raise span.error(
            f"{operator} needs whole numbers or decimals, found {left.type} and {right.type}; use CAST"
        )
    if operator == "/" and left.type == right.type and left.type.is_float:
        kind = left.type if left.type.name == "DOUBLE" else DOUBLE
    a, b = widened(left, kind), widened(right, kind)
    match operator:
        case "+":
            return Compiled(a.value + b.value, kind, in_turn([a, b]))
        case "-":
            return Compiled(a.value - b.value, kind, in_turn([a, b]))
        case "*":
            return Compiled(a.value * b.value, kind, in_turn([a, b]))
    own = fail_where((b.value == 0) & a.value.is_not_null(), _ZERO)
    return Compiled(quotient(a.value, b.value), kind, in_turn([b, a], own))


def _integers(operator: str, left: Compiled, right: Compiled) -> Compiled:
    kind = common(left.type, right.type) or BIGINT
    if operator == "DIV":
        kind = BIGINT
    a, b = (each.value.cast(_WIDE if kind == BIGINT else pl.Int64) for each in (left, right))
    match operator:
        case "+":
            exact = a + b
        case "-":
            exact = a - b
        case "*":
            exact = a * b
        case _:
            return _quotient(operator, left, right, a, b, kind)
    own = fail_where((exact < kind.least) | (exact > kind.most), f"{kind} overflow in {operator}")
    return Compiled(exact.cast(kind.column, strict=False), kind, in_turn([left, right], own))


def _quotient(
    operator: str, left: Compiled, right: Compiled, a: pl.Expr, b: pl.Expr, kind: SqlType
) -> Compiled:
    """DIV and %: truncated towards zero, and the remainder has the sign of the dividend."""
    whole = cut_quotient(a, b)
    zero = (b == 0) & a.is_not_null()
    own = fail_where(zero, _ZERO)
    if operator == "%":
        return Compiled((a - whole * b).cast(kind.column, strict=False), kind, in_turn([right, left], own))
    own = pl.coalesce(own, fail_where(whole > kind.most, "BIGINT overflow in DIV"))
    return Compiled(whole.cast(kind.column, strict=False), kind, in_turn([right, left], own))


def cut_quotient(a: pl.Expr, b: pl.Expr) -> pl.Expr:
    """A / b, truncated; NULL for a division by zero."""
    divisor = pl.when(b != 0).then(b)
    return a.abs() // divisor.abs() * (a.sign() * divisor.sign())


def _decimals(operator: str, left: Compiled, right: Compiled, span: Span) -> Compiled:
    one, other = _decimal_of(left), _decimal_of(right)
    scale = max(one.scale, other.scale)
    match operator:
        case "+" | "-":
            kind = decimal(max(one.precision - one.scale, other.precision - other.scale) + scale + 1, scale)
        case "*":
            kind = decimal(one.precision + other.precision + 1, one.scale + other.scale)
        case "/":
            scale = max(6, one.scale + other.precision + 1)
            kind = decimal(one.precision - one.scale + other.scale + scale, scale)
        case "%":
            kind = decimal(min(one.precision - one.scale, other.precision - other.scale) + scale, scale)
        case _:
            raise span.error("DIV needs whole numbers, found a DECIMAL; use / and CAST")
    if kind.precision > MOST_DIGITS:
        raise span.error(
            f"{left.type} {operator} {right.type} needs {kind.precision} digits, and a DECIMAL has at most "
            f"{MOST_DIGITS}; CAST them to fewer digits, or to DOUBLE"
        )
    if operator == "/":
        return _decimal_quotient(left, right, kind, one, other)
    own: pl.Expr | None = None
    if operator == "*":
        count = units(left.value, left.type, one.scale) * units(right.value, right.type, other.scale)
        order = [left, right]
    else:
        a, b = units(left.value, left.type, scale), units(right.value, right.type, scale)
        order = [left, right]
        if operator == "%":
            count = a - cut_quotient(a, b) * b
            own = fail_where((b == 0) & a.is_not_null(), _ZERO)
            order = [right, left]
        else:
            count = a + b if operator == "+" else a - b
    return Compiled(from_units(count, kind), kind, in_turn(order, own))


def _decimal_of(operand: Compiled) -> SqlType:
    """An integer as a DECIMAL: a literal has only the digits that it needs."""
    if operand.type.is_integer and isinstance(operand.literal, Literal):
        return decimal(len(operand.literal.text.lstrip("-0") or "0"), 0)
    return as_decimal(operand.type)


def _decimal_quotient(
    left: Compiled, right: Compiled, kind: SqlType, one: SqlType, other: SqlType
) -> Compiled:
    # One more digit than the result, for rounding; then the dividend fits into 128 bits.
    shift = kind.scale - one.scale + other.scale
    a = units(left.value, left.type, one.scale + shift)
    b = units(right.value, right.type, other.scale)
    divisor = pl.when(b != 0).then(b)
    magnitude = (a.abs() + divisor.abs() // 2) // divisor.abs()
    # Half up: (2a + b) // 2b, without doubling.
    rest = a.abs() - (a.abs() // divisor.abs()) * divisor.abs()
    magnitude = a.abs() // divisor.abs() + (rest >= divisor.abs() - rest).cast(_WIDE)
    count = magnitude * (a.sign() * divisor.sign())
    own = fail_where((b == 0) & a.is_not_null(), _ZERO)
    own = pl.coalesce(own, fail_where(too_long(count, kind), f"{kind} overflow in /"))
    return Compiled(from_units(rounded(count, 0), kind), kind, in_turn([right, left], own))


def _time_sum(operator: str, left: Compiled, right: Compiled, span: Span) -> Compiled:
    if operator == "+" and left.type == INTERVAL:
        left, right = right, left
    one, other = left.type, right.type
    sign = 1 if operator == "+" else -1
    if one == TIMESTAMP and other == INTERVAL:
        return checked_timestamp(
            left.value.dt.epoch("us") + sign * right.value.dt.total_microseconds(), [left, right]
        )
    if one == DATE and other in (INT,):
        return shifted_date(left, right, sign)
    if one == INTERVAL == other:
        return Compiled(left.value + sign * right.value, INTERVAL, in_turn([left, right]))
    raise span.error(
        f"{one} {operator} {other} is not supported; add an INTERVAL to a TIMESTAMP, or use DATEDIFF"
    )
