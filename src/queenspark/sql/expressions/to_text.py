"""Values as strings, as CAST(x AS STRING) formats them."""

from __future__ import annotations

import polars as pl

from ..source import Span
from ..types import BOOLEAN, DATE, DOUBLE, FLOAT, NULL, STRING, TIMESTAMP
from .compiled import Compiled
from .conversion import widened
from .java_numbers import double_text, float_text, per_value


def to_text(operand: Compiled, span: Span) -> Compiled:
    """The value as a string."""
    kind, value = operand.type, operand.value
    if kind == NULL:
        return widened(operand, STRING)
    if kind.is_text:
        return operand._replace(type=STRING)
    if kind.is_integer or kind.is_decimal:
        return Compiled(value.cast(pl.String), STRING, operand.error)
    if kind == BOOLEAN:
        name = pl.when(value).then(pl.lit("true")).when(~value).then(pl.lit("false"))
        return Compiled(name, STRING, operand.error)
    if kind == DOUBLE:
        return Compiled(per_value(value, double_text, pl.String()), STRING, operand.error)
    if kind == FLOAT:
        return Compiled(per_value(value, float_text, pl.String()), STRING, operand.error)
    if kind == DATE:
        return Compiled(value.dt.strftime("%Y-%m-%d"), STRING, operand.error)
    if kind == TIMESTAMP:
        text = value.dt.strftime("%Y-%m-%d %H:%M:%S.%6f").str.strip_chars_end("0").str.strip_chars_end(".")
        # A full second would end in zeros.
        whole = value.dt.strftime("%Y-%m-%d %H:%M:%S")
        return Compiled(
            pl.when(value.dt.microsecond() == 0).then(whole).otherwise(text), STRING, operand.error
        )
    raise span.error(f"{kind} cannot become a STRING")
