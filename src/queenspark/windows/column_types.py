"""Column types as text: a spec declares its input types, so that a batch without records has types too."""

from __future__ import annotations

import re

import polars as pl

from .errors import SpecError

_PLAIN: dict[str, pl.DataType] = {
    str(kind): kind
    for kind in (
        pl.Boolean(), pl.Int8(), pl.Int16(), pl.Int32(), pl.Int64(), pl.Float32(), pl.Float64(), pl.String(),
        pl.Date(), pl.Null(),
    )
} | {"Datetime": pl.Datetime("us", "UTC"), "Duration": pl.Duration("us")}  # fmt: skip
_TEXTS = {kind: text for text, kind in _PLAIN.items()}
_DECIMAL = re.compile(r"Decimal\((\d+),(\d+)\)")
_LIST = re.compile(r"List\((.+)\)")


def type_text(kind: pl.DataType) -> str:
    """Format a column type: `Int64`, `Decimal(12,2)`, `Datetime` (microseconds, UTC), `List(String)`."""
    if isinstance(kind, pl.Decimal):
        return f"Decimal({kind.precision},{kind.scale})"
    if isinstance(kind, pl.List):
        inner = kind.inner
        return f"List({type_text(inner if isinstance(inner, pl.DataType) else inner())})"
    if kind not in _TEXTS:
        raise SpecError(f"a column of type {kind} cannot be aggregated; use one of {', '.join(_PLAIN)}")
    return _TEXTS[kind]


def type_of(text: str) -> pl.DataType:
    """Parse a column type; raises SpecError."""
    if found := _DECIMAL.fullmatch(text):
        precision, scale = map(int, found.groups())
        if not (1 <= precision <= 38 and scale <= precision):
            raise SpecError(f"types: {text} must have 1 to 38 digits, and no more behind the point")
        return pl.Decimal(precision, scale)
    if found := _LIST.fullmatch(text):
        return pl.List(type_of(found[1]))
    if text not in _PLAIN:
        raise SpecError(
            f"types: {text!r} is unknown; use Decimal(p,s), List(…) or one of {', '.join(_PLAIN)}"
        )
    return _PLAIN[text]
