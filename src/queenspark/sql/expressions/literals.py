"""Constants."""

from __future__ import annotations

from decimal import Decimal

import polars as pl

from ..tree import Literal
from ..types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    FLOAT,
    INT,
    INTERVAL,
    MOST_DIGITS,
    NULL,
    SMALLINT,
    STRING,
    TINYINT,
    SqlType,
    decimal,
)
from .compiled import Compiled
from .times import date_literal, timestamp_literal

_LARGEST = {DOUBLE: Decimal("1.7976931348623157e308"), FLOAT: Decimal("3.4028234663852886e38")}
_WHOLE = {"bigint": BIGINT, "smallint": SMALLINT, "tinyint": TINYINT}


def literal(node: Literal) -> Compiled:
    """A constant, in the type of Spark's literal."""
    value, kind = _value(node)
    return Compiled(pl.lit(value, dtype=kind.column), kind, literal=node)


def _value(node: Literal) -> tuple[object, SqlType]:
    match node.kind:
        case "null":
            return None, NULL
        case "boolean":
            return node.text == "TRUE", BOOLEAN
        case "string":
            return node.text, STRING
        case "double" | "float":
            return _fraction(node, DOUBLE if node.kind == "double" else FLOAT)
        case "date" | "timestamp":
            return (date_literal if node.kind == "date" else timestamp_literal)(node)
        case "interval":
            return int(node.text), INTERVAL
        case "decimal":
            return _decimal(node)
        case _:
            return _whole(node)


def _fraction(node: Literal, kind: SqlType) -> tuple[object, SqlType]:
    """As in Spark, a number beyond the largest one is not rounded to it."""
    if Decimal(node.text).copy_abs() > _LARGEST[kind]:
        raise node.span.error(f"{node.text} is not a {kind}: it is out of range")
    (value,) = pl.Series([node.text]).cast(kind.column)  # rounds once
    return value, kind


def _whole(node: Literal) -> tuple[object, SqlType]:
    value = int(node.text)
    kinds = [_WHOLE[node.kind]] if node.kind in _WHOLE else [INT, BIGINT]
    for kind in kinds:
        if kind.least <= value <= kind.most:
            return value, kind
    if node.kind in _WHOLE:
        raise node.span.error(f"{node.text} is not a {kinds[0]}: it is out of range")
    return _decimal(node)


def _decimal(node: Literal) -> tuple[object, SqlType]:
    value = Decimal(node.text)
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    precision = max(len(str(int("".join(map(str, digits)) or "0"))) + max(exponent, 0), -exponent, 1)
    if precision > MOST_DIGITS:
        raise node.span.error(f"the number has {precision} digits; at most {MOST_DIGITS} are allowed")
    return (Decimal(int(value)) if exponent > 0 else value), decimal(precision, max(-exponent, 0))
