"""Spark's implicit conversions, which cannot fail: to a wider number, from DATE to TIMESTAMP."""

from __future__ import annotations

import polars as pl

from ..source import Span
from ..types import DOUBLE, NULL, TIMESTAMP, SqlType, common
from .compiled import Compiled
from .decimals import from_units, units


def widened(compiled: Compiled, to: SqlType) -> Compiled:
    """Convert to a type that holds all its values."""
    kind = compiled.type
    if kind == to or (kind.is_text and to.is_text):
        return compiled._replace(type=to)
    if kind == NULL:
        return Compiled(pl.lit(None, dtype=to.column), to, compiled.error)
    value = compiled.value
    if to.is_decimal:
        return Compiled(from_units(units(value, kind, to.scale), to), to, compiled.error)
    if kind.is_decimal and to == DOUBLE:
        # Through its digits: division by a power of ten can be off in the last bit.
        return Compiled(value.cast(pl.String).cast(pl.Float64, strict=False), to, compiled.error)
    if to == TIMESTAMP:
        return Compiled(value.cast(pl.Datetime("us")).dt.replace_time_zone("UTC"), to, compiled.error)
    return Compiled(value.cast(to.column, strict=False), to, compiled.error)


def same_type(operands: list[Compiled], span: Span, what: str) -> list[Compiled]:
    """Convert the operands to their common type."""
    kind = operands[0].type
    for operand in operands[1:]:
        found = common(kind, operand.type)
        if found is None:
            raise mismatch(kind, operand.type, span, what)
        kind = found
    return [widened(operand, kind) for operand in operands]


def mismatch(one: SqlType, other: SqlType, span: Span, what: str) -> Exception:
    """The error for two incompatible types."""
    if one.is_decimal and other.is_numeric:
        return span.error(
            f"{what} have types {one} and {other}, which need more than 38 digits; CAST them to fewer digits"
        )
    return span.error(f"{what} have incompatible types {one} and {other}; CAST one of them")
