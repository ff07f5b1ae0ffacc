"""Payloads to columns: each batch is decoded once, and only the requested paths.

A decoder generated for these paths skips everything else in the JSON text. A value that does not fit its
declared type is an error in that row and path only, with a declaration that would fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Context, Decimal, InvalidOperation
from math import isfinite
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
import polars as pl

from ..windows.gregorian import END_US, FIRST_US
from .expressions.time_text import date_of_text, iso_timestamps
from .expressions.times import from_micros
from .types import DATE, FLOAT, MOST_DIGITS, TIMESTAMP, SqlType

_SHOWN = 80
_EXACT = Context(prec=200)
_SPECIAL = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_MOST_MS = 10**15
_ROUNDS_TO_INFINITY = 3.4028235677973366e38  # as a FLOAT
#: Errors of msgspec for a text that is not JSON, or nested too deeply.
BAD_JSON = (msgspec.MsgspecError, UnicodeError, RecursionError)


class Field(NamedTuple):
    """A value in the payload: its path and its type."""

    steps: tuple[str | int, ...]
    type: SqlType

    @property
    def column(self) -> str:
        """The name of its column."""
        return f"{msgspec.json.encode(list(self.steps)).decode()}:{self.type}"

    @property
    def error(self) -> str:
        """The name of the column of its errors."""
        return f"{self.column}!"

    def __str__(self) -> str:
        first, *rest = self.steps
        return str(first) + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in rest)


class PayloadDecoder:
    """Decodes the payloads of a queue for all its readers."""

    def __init__(self, fields: Sequence[Field], *, must_be_objects: bool = False) -> None:
        """Prepare; with `must_be_objects`, a named field of any other payload is an error, not NULL."""
        self._must_be_objects = must_be_objects
        self._fields = list(dict.fromkeys(fields))
        self._quick = [field for field in self._fields if _is_alone(field, self._fields)]
        tree: dict[str, Any] = {}
        for field in self._quick:
            level = tree
            for name in field.steps[:-1]:
                level = level.setdefault(str(name), {})
            level[str(field.steps[-1])] = _leaf(field.type)
        self._decode: Callable[[Any], Any] = msgspec.json.Decoder(_struct(tree) | None).decode

    def columns(self, payloads: pl.Series) -> pl.DataFrame:
        """Return the values and errors of each field. Missing values are NULL."""
        return self.columns_and_unusual(payloads)[0]

    def columns_and_unusual(self, payloads: pl.Series) -> tuple[pl.DataFrame, list[int]]:
        """Return the same, and the indexes of payloads with unexpected types or invalid JSON."""
        texts = payloads.to_list()
        rows, unusual = self._rows(texts)
        others = _other_than_objects(texts, unusual) if self._must_be_objects else {}
        columns: list[pl.Series] = []
        for field in self._fields:
            errors: list[str | None] | None
            if field not in self._quick:
                values, errors = _from_raw(field, [find(text, field.steps) for text in texts])
            else:
                values, errors = _at(rows, field)
                if unusual:
                    found, wrong = _from_raw(field, [find(texts[number], field.steps) for number in unusual])
                    errors = errors or [None] * len(texts)
                    for number, value, error in zip(unusual, found, wrong, strict=True):
                        values[number], errors[number] = value, error
            if errors is not None and isinstance(field.steps[0], str):
                for number, shown in others.items():
                    errors[number] = f"{field} cannot be read: the payload is {shown}, not a JSON object"
            columns += _column(field, values, errors)
        return pl.DataFrame(columns), unusual

    def _rows(self, texts: list[str | None]) -> tuple[list[Any], list[int]]:
        """Return the decoded payloads, and the indexes of those with unexpected types."""
        try:
            return [*map(self._decode, texts)], []
        except (*BAD_JSON, TypeError):  # TypeError: the payload is NULL
            pass
        rows: list[Any] = []
        unusual: list[int] = []
        for number, text in enumerate(texts):
            try:
                rows.append(None if text is None else self._decode(text))
            except BAD_JSON:
                rows.append(None)
                unusual.append(number)
        return rows, unusual


def _other_than_objects(texts: list[str | None], unusual: list[int]) -> dict[int, str]:
    """Return the beginnings of payloads that are no JSON objects, by index; NULL is missing, not wrong."""
    found = {number: (texts[number] or "").strip() for number in unusual}
    return {number: text[:_SHOWN] for number, text in found.items() if not text.startswith("{")}


def find(text: str | bytes | None, steps: tuple[str | int, ...]) -> bytes | None:
    """Return the JSON text at a path, or None."""
    raw: Any = text
    for step in steps:
        if raw is None:
            return None
        try:
            if isinstance(step, int):
                items = msgspec.json.decode(raw, type=list[msgspec.Raw])
                raw = items[step] if step < len(items) else None
            else:
                raw = msgspec.json.decode(raw, type=dict[str, msgspec.Raw]).get(step)
        except BAD_JSON:
            return None
    if raw is None:
        return None
    return raw.encode() if isinstance(raw, str) else bytes(raw)


def fitting(raw: bytes) -> str:
    """Return the type that a JSON value would fit."""
    match raw[:1]:
        case b'"':
            return "STRING"
        case b"t" | b"f":
            return "BOOLEAN"
        case b"{" | b"[":
            return "JSON"
    digits = raw.lstrip(b"-")
    if digits.isdigit() and len(digits) <= MOST_DIGITS:
        return "BIGINT" if -(2**63) <= int(raw) < 2**63 else f"DECIMAL({len(digits)}, 0)"
    return "DOUBLE" if isfinite(float(raw)) else "STRING"


def _is_alone(field: Field, fields: list[Field]) -> bool:
    """Whether a typed decoder supports this path: no index, and no other path through the same field."""
    if any(isinstance(step, int) for step in field.steps):
        return False
    for other in fields:
        shared = min(len(other.steps), len(field.steps))
        if other is not field and other.steps[:shared] == field.steps[:shared]:
            return False
    return True


def _leaf(kind: SqlType) -> Any:
    if kind.is_integer:
        return int | None
    if kind.is_float:
        return float | None
    if kind.name == "BOOLEAN":
        return bool | None
    if kind == TIMESTAMP:
        return str | int | float | None
    if kind.name in ("STRING", "DATE"):
        return str | None
    return msgspec.Raw  # with all digits


def _struct(tree: dict[str, Any]) -> Any:
    """Build a struct with the requested names of one level; the decoder skips all others."""
    definitions: list[tuple[str, Any, Any]] = []
    rename: dict[str, str] = {}
    for number, (name, below) in enumerate(tree.items()):
        kind = _struct(below) | None if isinstance(below, dict) else below
        definitions.append((f"f{number}", kind, None))
        rename[f"f{number}"] = name
    # The attributes are accessed by position: see `_at`.
    return msgspec.defstruct("Level", definitions, rename=rename, namespace={"names": list(tree)}, gc=False)


def _at(rows: list[Any], field: Field) -> tuple[list[Any], list[str | None] | None]:
    """Return the values and errors of one field of decoded payloads."""
    for step in field.steps:
        kind = next((type(row) for row in rows if row is not None), None)
        if kind is None:
            return [None] * len(rows), None
        name = f"f{kind.names.index(step)}"
        try:
            rows = [*map(attrgetter(name), rows)]
        except AttributeError:
            rows = [None if row is None else getattr(row, name) for row in rows]
    if field.type.name in ("DECIMAL", "JSON", "ARRAY"):
        return _from_raw(field, [None if row is None else bytes(row) for row in rows])
    return rows, None


def _from_raw(field: Field, raws: list[bytes | None]) -> tuple[list[Any], list[str | None]]:
    values: list[Any] = []
    errors: list[str | None] = []
    for raw in raws:
        value, error = None, None
        if raw is not None and raw != b"null":
            try:
                value = _value(raw, field.type)
            except (*BAD_JSON, ValueError, InvalidOperation):
                shown = raw[:_SHOWN].decode(errors="replace")
                error = f"{field} is {shown}, not a {field.type}; it would fit {fitting(raw)}"
        values.append(value)
        errors.append(error)
    return values, errors


def _value(raw: bytes, kind: SqlType) -> Any:
    """Decode one value to its type; raises ValueError."""
    if kind.name == "JSON":
        return raw.decode()
    if kind.name == "STRING":
        return msgspec.json.decode(raw, type=str) if raw[:1] == b'"' else raw.decode()
    if kind.is_decimal:
        return _decimal(raw, kind)
    if kind.element is not None:
        items = msgspec.json.decode(raw, type=list[msgspec.Raw])
        return [None if bytes(item) == b"null" else _value(bytes(item), kind.element) for item in items]
    if kind.is_float and raw[:1] == b'"':
        text = msgspec.json.decode(raw, type=str)
        if text not in _SPECIAL:
            raise ValueError(text)
        return _SPECIAL[text]
    value = msgspec.json.decode(raw, type=_leaf(kind))
    if kind == FLOAT and abs(value) >= _ROUNDS_TO_INFINITY:
        raise ValueError(value)
    if kind.is_integer and not kind.least <= value <= kind.most:
        raise ValueError(value)
    return value


def _decimal(raw: bytes, kind: SqlType) -> Decimal:
    if not isinstance(msgspec.json.decode(raw), int | float) or raw[:1] in b"tf":
        raise ValueError(raw)
    value = Decimal(raw.decode())
    if value.copy_abs() >= Decimal(10) ** (kind.precision - kind.scale):
        raise ValueError(raw)
    if _EXACT.remainder(value.scaleb(kind.scale, _EXACT), Decimal(1)):  # more digits than the type
        raise ValueError(raw)
    return value


def _column(field: Field, values: list[Any], errors: list[str | None] | None) -> list[pl.Series]:
    """Build the value and error columns of a field; times are parsed here, all at once."""
    problems = (
        pl.Series(field.error, errors, dtype=pl.String)
        if errors is not None
        else pl.repeat(None, len(values), dtype=pl.String, eager=True).alias(field.error)
    )
    if field.type in (TIMESTAMP, DATE):
        return _times(field, values, problems)
    if field.type == FLOAT:
        return _floats(field, values, problems)
    try:
        return [pl.Series(field.column, values, dtype=field.type.column), problems]
    except (TypeError, OverflowError, pl.exceptions.PolarsError):  # an integer overflow
        raws = [None if value is None else msgspec.json.encode(value) for value in values]
        found, wrong = _from_raw(field, raws)
        return [
            pl.Series(field.column, found, dtype=field.type.column),
            pl.Series(field.error, wrong, dtype=pl.String).zip_with(problems.is_null(), problems),
        ]


def _floats(field: Field, values: list[Any], problems: pl.Series) -> list[pl.Series]:
    """Build the columns of a FLOAT; a number that would be rounded to infinity does not fit."""
    found = pl.Series(field.column, values, dtype=pl.Float64)
    wrong = (found.is_finite() & (found.abs() >= _ROUNDS_TO_INFINITY)).fill_null(False)
    if wrong.any():
        problems = pl.Series(field.error, [
            f"{field} is {value}, not a {field.type}; it would fit DOUBLE" if bad else error
            for value, bad, error in zip(values, wrong.to_list(), problems.to_list(), strict=True)
        ], dtype=pl.String)  # fmt: skip
        found = found.set(wrong, None)
    return [found.cast(pl.Float32), problems]


def _times(field: Field, values: list[Any], problems: pl.Series) -> list[pl.Series]:
    texts = [value if isinstance(value, str) else None for value in values]
    if field.type == DATE:
        column = pl.Series("text", texts, dtype=pl.String).to_frame()
        found = column.select(date_of_text(pl.col("text"))).to_series()
    else:
        found = iso_timestamps(texts)
    if field.type == TIMESTAMP:
        micros = pl.Series("us", [_micros(value) for value in values], dtype=pl.Int64)
        found = found.zip_with(
            micros.is_null(), micros.to_frame().select(from_micros(pl.col("us"))).to_series()
        )
    present = pl.Series([value is not None for value in values], dtype=pl.Boolean)
    wrong = present & found.is_null() & problems.is_null()
    if wrong.any():
        problems = pl.Series(field.error, [
            f"{field} is {str(value)[:_SHOWN]!r}, not a {field.type}; write it in ISO 8601" if bad else error
            for value, bad, error in zip(values, wrong.to_list(), problems.to_list(), strict=True)
        ], dtype=pl.String)  # fmt: skip
    return [found.alias(field.column), problems]


def _micros(value: Any) -> int | None:
    """Convert milliseconds to microseconds, if it is a valid time."""
    if value is None or isinstance(value, str) or not -_MOST_MS < value < _MOST_MS:
        return None
    micros = round(value * 1000)
    return micros if FIRST_US <= micros < END_US else None
