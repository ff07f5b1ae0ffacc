"""CAST and TRY_CAST, by ANSI rules: an invalid value is an error, or NULL for TRY_CAST."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import polars as pl

from ..source import Span
from ..types import BIGINT, BOOLEAN, DATE, DOUBLE, JSON, NULL, STRING, TIMESTAMP, SqlType
from .compiled import Compiled, fail_where, in_turn
from .conversion import widened
from .decimals import from_units, rounded, too_long, truncated, units
from .division import quotient
from .java_numbers import per_value
from .json_text import json_of_text
from .time_text import date_of_text, timestamp_of_text
from .times import from_micros, outside
from .to_text import to_text

_BLANKS = "".join(map(chr, [*range(33), 127]))
_WHOLE = r"\A[+-]?[0-9]+\z"
_FLOAT = r"\A[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[dDfF]?\z"
_DECIMAL = r"\A[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\z"
_TRUE = ["t", "true", "y", "yes", "1"]
_FALSE = ["f", "false", "n", "no", "0"]
_EXACT = Context(prec=500, rounding=ROUND_HALF_UP)


def cast(operand: Compiled, to: SqlType, span: Span, *, trying: bool = False) -> Compiled:
    """Convert a value to another type."""
    if operand.type == to or operand.type == NULL:
        return widened(operand, to)
    converted = _converted(operand, to, span)
    if not trying or converted.error is None:
        return converted
    # The operand's own error is kept.
    own = _converted(operand.failing(None), to, span).error
    value = converted.value if own is None else pl.when(own.is_null()).then(converted.value)
    return Compiled(value, to, operand.error)


def _converted(operand: Compiled, to: SqlType, span: Span) -> Compiled:
    kind = operand.type
    if kind.element is not None or to.element is not None or "INTERVAL" in (kind.name, to.name):
        raise _refused(kind, to, span)
    if to == STRING:
        return to_text(operand, span)
    if to == JSON:
        if not kind.is_text:
            raise _refused(kind, to, span)
        return _checked(operand, json_of_text(operand.value), JSON)
    if kind.is_text:
        return _of_text(operand, to)
    if to in (TIMESTAMP, DATE) or kind in (TIMESTAMP, DATE):
        return _times(operand, to, span)
    if to == BOOLEAN:
        return Compiled(
            operand.value.cast(pl.Boolean) if not kind.is_decimal else operand.value != 0, to, operand.error
        )
    if kind == BOOLEAN:
        operand, kind = (
            Compiled(operand.value.cast(pl.Int8), SqlType("TINYINT"), operand.error),
            SqlType("TINYINT"),
        )
    if to.is_integer:
        return _to_integer(operand, to)
    if to.is_decimal:
        return _to_decimal(operand, to)
    return _to_float(operand, to)


def _refused(kind: SqlType, to: SqlType, span: Span) -> Exception:
    return span.error(f"{kind} cannot be cast to {to}")


def _misfit(operand: Compiled, to: SqlType) -> pl.Expr:
    value = operand.value if operand.type.is_text else operand.value.cast(pl.String)
    return pl.concat_str([pl.lit("'"), value.str.slice(0, 100), pl.lit(f"' is not a {to}")])


def _checked(operand: Compiled, value: pl.Expr, to: SqlType) -> Compiled:
    """A conversion whose result is NULL exactly where it fails."""
    own = fail_where(value.is_null() & operand.value.is_not_null(), _misfit(operand, to))
    return Compiled(value, to, in_turn([operand], own))


def _to_integer(operand: Compiled, to: SqlType) -> Compiled:
    kind, value = operand.type, operand.value
    if kind.is_decimal:
        value = truncated(units(value, kind, kind.scale), kind.scale)
    elif kind.is_float:
        wide = value.cast(pl.Float64)
        inside = (wide.floor() <= float(to.most)) & (wide.ceil() >= float(to.least))
        cut = pl.when(inside & wide.is_not_nan()).then(wide)
        whole = pl.when(cut >= float(to.most)).then(pl.lit(to.most, dtype=pl.Int64))
        return _checked(
            operand, whole.otherwise(cut.cast(pl.Int64, strict=False)).cast(to.column, strict=False), to
        )
    return _checked(operand, value.cast(to.column, strict=False), to)


def _to_float(operand: Compiled, to: SqlType) -> Compiled:
    if operand.type.is_decimal:
        return Compiled(operand.value.cast(pl.String).cast(to.column, strict=False), to, operand.error)
    return Compiled(operand.value.cast(to.column, strict=False), to, operand.error)


def _to_decimal(operand: Compiled, to: SqlType) -> Compiled:
    kind = operand.type
    if kind.is_float:
        digits = operand.value.cast(pl.Float64)
        finite = operand._replace(
            value=pl.when(digits.is_finite()).then(digits), type=DOUBLE
        )  # otherwise NULL, as in Spark
        return _checked(finite, per_value(finite.value, _decimal_of(to), to.column), to)
    own_scale = kind.scale if kind.is_decimal else 0
    if kind.is_decimal and kind.precision - kind.scale + max(kind.scale, to.scale) > 38:
        # Too many digits for 128 bits: convert through Python's decimals.
        return _checked(operand, per_value(operand.value, _decimal_of(to), to.column), to)
    if not kind.is_decimal and to.scale > 18:
        return _checked(operand, per_value(operand.value, _decimal_of(to), to.column), to)
    count = units(operand.value, kind, max(own_scale, to.scale))
    count = rounded(count, max(own_scale - to.scale, 0))
    return _checked(operand, from_units(pl.when(~too_long(count, to)).then(count), to), to)


def _decimal_of(to: SqlType) -> Any:
    unit, limit = Decimal(1).scaleb(-to.scale), Decimal(10) ** (to.precision - to.scale)

    def convert(value: Any) -> Decimal | None:
        try:
            number = Decimal(repr(value) if isinstance(value, float) else value)
            if not number.is_finite() or number.adjusted() > 60:
                return None
            number = (
                number.quantize(unit, rounding=ROUND_HALF_UP, context=_EXACT)
                if number.adjusted() > -450
                else Decimal(0)
            )
        except InvalidOperation:
            return None
        return number if number.copy_abs() < limit else None

    return convert


def _of_text(operand: Compiled, to: SqlType) -> Compiled:
    text = operand.value.str.strip_chars(_BLANKS)
    if to == BOOLEAN:
        small = text.str.to_lowercase()
        value = pl.when(small.is_in(_TRUE)).then(pl.lit(True)).when(small.is_in(_FALSE)).then(pl.lit(False))
        return _checked(operand, value, to)
    if to.is_integer:
        plain = pl.when(text.str.contains(_WHOLE)).then(text.str.strip_prefix("+"))
        return _checked(operand, plain.cast(pl.Int128, strict=False).cast(to.column, strict=False), to)
    if to.is_float:
        return _checked(operand, _float_of_text(text, to), to)
    if to.is_decimal:
        shaped = pl.when(text.str.contains(_DECIMAL)).then(text)
        return _checked(operand, per_value(shaped, _decimal_of(to), to.column), to)
    return _checked(operand, date_of_text(text) if to == DATE else timestamp_of_text(text), to)


def _float_of_text(text: pl.Expr, to: SqlType) -> pl.Expr:
    small = text.str.to_lowercase()
    plain = pl.when(text.str.contains(_FLOAT)).then(text.str.strip_chars_end("dDfF"))
    infinite = pl.lit(float("inf"))
    value = (
        pl.when(small.is_in(["inf", "+inf", "infinity", "+infinity"]))
        .then(infinite)
        .when(small.is_in(["-inf", "-infinity"]))
        .then(-infinite)
        .when((small == "nan") | text.is_in(["+NaN", "-NaN"]))
        .then(pl.lit(float("nan")))
        .otherwise(plain.cast(to.column, strict=False))  # not through DOUBLE, which would round twice
    )
    return value.cast(to.column)


def _times(operand: Compiled, to: SqlType, span: Span) -> Compiled:
    kind, value = operand.type, operand.value
    if kind == DATE and to == TIMESTAMP:
        return widened(operand, TIMESTAMP)
    if kind == TIMESTAMP and to == DATE:
        return Compiled(value.dt.date(), DATE, operand.error)
    if kind == TIMESTAMP and to.is_integer:
        seconds = Compiled(value.dt.epoch("us") // 1_000_000, BIGINT, operand.error)
        return _to_integer(seconds, to) if to != BIGINT else seconds
    if kind == TIMESTAMP and to == DOUBLE:
        return Compiled(quotient(value.dt.epoch("us").cast(pl.Float64), pl.lit(1e6)), to, operand.error)
    if to == TIMESTAMP and kind.is_integer:
        return _moment(operand, value.cast(pl.Int128) * 1_000_000)
    if to == TIMESTAMP and kind == DOUBLE:
        micros = value * 1_000_000.0
        inside = micros.is_finite() & (micros.abs() < 2.0**62)
        cut = pl.when(inside).then(micros).cast(pl.Int64, strict=False).cast(pl.Int128)
        return _moment(operand, cut, missing=value.is_not_null() & ~inside)
    if kind == DATE and to in (STRING,):
        return to_text(operand, span)
    raise _refused(kind, to, span)


def _moment(operand: Compiled, micros: pl.Expr, missing: pl.Expr | None = None) -> Compiled:
    wrong = outside(micros)
    value = from_micros(pl.when(~wrong).then(micros))
    own = fail_where(wrong if missing is None else wrong | missing, _misfit(operand, TIMESTAMP))
    return Compiled(value, TIMESTAMP, in_turn([operand], own))
