"""JSON encoding of values: numbers with all their digits, NaN and Infinity as strings, times in ISO 8601."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import polars as pl

from .types import BOOLEAN, DATE, TIMESTAMP, SqlType


def row_text(columns: Mapping[str, tuple[pl.Expr, SqlType]]) -> pl.Expr:
    """Encode a JSON object with every column, including NULLs."""
    parts: list[pl.Expr] = []
    for number, (name, (value, kind)) in enumerate(columns.items()):
        opening = "{" if number == 0 else ","
        parts += [pl.lit(f"{opening}{msgspec.json.encode(name).decode()}:"), json_text(value, kind)]
    return pl.concat_str([*parts, pl.lit("}")]) if parts else pl.lit("{}")


def json_text(value: pl.Expr, kind: SqlType) -> pl.Expr:
    """Encode each value as JSON; `null` for NULL."""
    if kind.is_integer or kind.is_decimal:
        text = value.cast(pl.String)
    elif kind.is_float:
        text = _float_text(value)
    elif kind == BOOLEAN:
        text = pl.when(value).then(pl.lit("true")).when(~value).then(pl.lit("false"))
    elif kind == TIMESTAMP:
        text = value.dt.strftime('"%Y-%m-%dT%H:%M:%S.%6fZ"')
    elif kind == DATE:
        text = value.dt.strftime('"%Y-%m-%d"')
    elif kind.element is not None:
        elements = value.list.eval(json_text(pl.element(), kind.element)).list.join(",")
        text = pl.concat_str([pl.lit("["), elements, pl.lit("]")])
    elif kind.name == "JSON":
        text = value
    else:
        text = _serialized(value)
    return text.fill_null("null")


def _float_text(value: pl.Expr) -> pl.Expr:
    return (
        pl.when(value.is_nan())
        .then(pl.lit('"NaN"'))
        .when(value.is_infinite())
        .then(pl.when(value > 0).then(pl.lit('"Infinity"')).otherwise(pl.lit('"-Infinity"')))
        .otherwise(_serialized(value))
    )


def _serialized(value: pl.Expr) -> pl.Expr:
    """Encode a value with polars: as an object with one field, then without the object."""
    return pl.struct(value.alias("v")).struct.json_encode().str.slice(5).str.head(-1)
