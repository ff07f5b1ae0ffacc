"""Extracts the fields of records from a format: a column of values and a column of errors for each field.

A record whose value does not fit its type is dead if the query uses that field; the reason names the type
that would fit. The rule is the same for all connectors and for messages of queues.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from ..sql.expressions.json_text import json_of_text
from ..sql.expressions.time_text import date_of_text, timestamp_of_iso
from ..sql.expressions.times import from_micros
from ..sql.payload import BAD_JSON, Field, PayloadDecoder
from ..sql.types import DATE, JSON, TIMESTAMP, SqlType
from ..windows.gregorian import END_US, FIRST_US

_SHOWN = 80
_TRUE, _FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")


class JsonFields:
    """Fields of JSON objects."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self._decoder = PayloadDecoder(fields)
        self._object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

    def columns(self, texts: pl.Series) -> tuple[pl.DataFrame, dict[int, str]]:
        """Return values and errors, and the reasons why texts are not JSON objects, by row number."""
        found, unusual = self._decoder.columns_and_unusual(texts)
        reasons: dict[int, str] = {}
        for number in unusual:
            text = texts[number]
            try:
                self._object(text)
            except BAD_JSON as error:
                reasons[number] = f"not a JSON object: {error}: {text[:_SHOWN].rstrip()}"
        return found, reasons


class ColumnFields:
    """Fields of tables, with typed or text columns."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self._fields = list(dict.fromkeys(fields))
        self._below = {
            name: PayloadDecoder([Field(field.steps[1:], field.type) for field in below])
            for name in dict.fromkeys(str(field.steps[0]) for field in self._fields)
            if (
                below := [each for each in self._fields if str(each.steps[0]) == name and len(each.steps) > 1]
            )
        }

    @property
    def names(self) -> list[str]:
        """The required columns."""
        return list(dict.fromkeys(str(field.steps[0]) for field in self._fields))

    def columns(self, table: pl.DataFrame) -> pl.DataFrame:
        """Return values and errors. Missing columns are NULL."""
        found: list[pl.Series] = []
        for name, decoder in self._below.items():
            texts = _json_text(table[name]) if name in table.columns else _nothing(name, table.height)
            below = decoder.columns(texts)
            for field in self._fields:
                if str(field.steps[0]) == name and len(field.steps) > 1:
                    inner = Field(field.steps[1:], field.type)
                    found += [below[inner.column].alias(field.column), below[inner.error].alias(field.error)]
        for field in self._fields:
            if len(field.steps) == 1:
                found += _converted(field, table)
        return pl.DataFrame(found)


def _converted(field: Field, table: pl.DataFrame) -> list[pl.Series]:
    name = str(field.steps[0])
    if name not in table.columns:
        nothing = pl.repeat(None, table.height, dtype=field.type.column, eager=True)
        return [nothing.alias(field.column), _nothing(field.error, table.height)]
    raw = table[name]
    if raw.dtype == field.type.column and field.type != JSON:
        return [raw.alias(field.column), _nothing(field.error, table.height)]
    try:
        frame = raw.alias("raw").to_frame()
        value = frame.select(_cast(pl.col("raw"), raw.dtype, field.type).alias("value")).to_series()
    except pl.exceptions.PolarsError:
        value = pl.repeat(None, raw.len(), dtype=field.type.column, eager=True)
    wrong = raw.is_not_null() & value.is_null()
    errors = _nothing(field.error, raw.len())
    if wrong.any():
        texts = _json_text(raw).str.head(_SHOWN)
        reason = pl.format(
            f"{field} is {{}}, not a {field.type}; it would fit {_fitting(raw.dtype)}", pl.col("t")
        )
        named = texts.alias("t").to_frame().select(reason).to_series()
        errors = named.set(~wrong, None).alias(field.error)
    return [value.alias(field.column), errors]


def _cast(raw: pl.Expr, dtype: pl.DataType, kind: SqlType) -> pl.Expr:
    """Cast a column to another type; values that do not fit become NULL."""
    if kind == JSON:
        return _as_json(raw, dtype)
    if kind.is_text:
        return _as_text(raw, dtype)
    if dtype == pl.String:
        return _of_text(raw, kind)
    if kind == TIMESTAMP:
        if isinstance(dtype, pl.Datetime):
            return (
                raw.dt.replace_time_zone("UTC")
                if dtype.time_zone is None
                else raw.dt.convert_time_zone("UTC")
            )
        return _of_millis(raw) if dtype.is_numeric() else raw.cast(kind.column, strict=False)
    return raw.cast(kind.column, strict=False)


def _of_text(raw: pl.Expr, kind: SqlType) -> pl.Expr:
    if kind == TIMESTAMP:
        return pl.coalesce(timestamp_of_iso(raw), _of_millis(raw.cast(pl.Float64, strict=False)))
    if kind == DATE:
        return date_of_text(raw)
    if kind.name == "BOOLEAN":
        lower = raw.str.to_lowercase()
        return pl.when(lower.is_in(_TRUE)).then(True).when(lower.is_in(_FALSE)).then(False)
    found = raw.str.strip_chars().cast(kind.column, strict=False)
    if not kind.is_decimal:
        return found
    # The cast would round values with more digits than the type allows.
    digits = (
        raw.str.strip_chars().str.strip_chars_end("0").str.extract(r"\.(\d+)$").str.len_chars().fill_null(0)
    )
    return pl.when(digits <= kind.scale).then(found)


def _of_millis(raw: pl.Expr) -> pl.Expr:
    micros = (raw.cast(pl.Float64) * 1000).round()
    return from_micros(pl.when(micros.is_between(FIRST_US, END_US - 1)).then(micros).cast(pl.Int64))


def _as_json(raw: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    if dtype == pl.String:
        return json_of_text(raw)
    if dtype.is_integer() or dtype.is_decimal() or dtype == pl.Boolean:
        return raw.cast(pl.String)
    return raw.map_batches(_json_text, return_dtype=pl.String(), is_elementwise=True)


def _as_text(raw: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    if dtype == pl.String:
        return raw
    if isinstance(dtype, pl.Struct):
        return raw.struct.json_encode()
    if isinstance(dtype, pl.List):
        return raw.map_batches(_json_text, return_dtype=pl.String(), is_elementwise=True)
    return raw.cast(pl.String, strict=False)


def _json_text(raw: pl.Series) -> pl.Series:
    """Return a column as JSON text; a text column is returned unchanged."""
    if raw.dtype == pl.String:
        return raw
    if isinstance(raw.dtype, pl.Struct):
        return raw.struct.json_encode()
    values = [None if value is None else msgspec.json.encode(value).decode() for value in raw.to_list()]
    return pl.Series(raw.name, values, dtype=pl.String)


def _fitting(dtype: pl.DataType) -> str:
    if dtype.is_integer():
        return "BIGINT"
    if dtype.is_float():
        return "DOUBLE"
    return {pl.Boolean: "BOOLEAN", pl.Date: "DATE"}.get(type(dtype), "STRING")


def _nothing(name: str, height: int) -> pl.Series:
    return pl.repeat(None, height, dtype=pl.String, eager=True).alias(name)
