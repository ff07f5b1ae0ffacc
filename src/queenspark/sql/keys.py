"""Partition names from keys: deterministic, everywhere and forever."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256

import polars as pl

from ..windows.parts import one_zero
from .encoding import json_text
from .payload import Field, PayloadDecoder
from .types import STRING, SqlType

#: Maximum length of a partition name.
LONGEST = 255
_CONTROLS = r"[\x00-\x1f\x7f-\x9f]"
_CONTROL = re.compile(_CONTROLS)
_HASH = 64


def partition_name(key: Sequence[tuple[pl.Expr, SqlType]]) -> pl.Expr:
    """The partition of each row: the key as text. Overlong keys end in their SHA-256."""
    return shortened(key_text(key))


def key_text(key: Sequence[tuple[pl.Expr, SqlType]]) -> pl.Expr:
    """The key of each row as text, which `key_values` parses.

    A single string is itself, unless it is empty, begins with `[` or has control characters. Everything else
    is a JSON array.
    """
    texts = [json_text(_one_zero(value, kind), kind) for value, kind in key]
    joined: list[pl.Expr] = []
    for text in texts:
        joined += [text] if not joined else [pl.lit(","), text]
    name = _printable(pl.concat_str([pl.lit("["), *joined, pl.lit("]")]))
    if len(key) == 1 and key[0][1].name == "STRING":
        value = key[0][0]
        plain = (value != "") & ~value.str.starts_with("[") & ~value.str.contains(_CONTROLS)
        name = pl.when(plain.fill_null(False)).then(value).otherwise(name)
    return name


def _printable(array: pl.Expr) -> pl.Expr:
    """Escape the control characters that JSON allows in strings; those between values become blanks."""
    has_some = pl.when(array.str.contains(_CONTROLS)).then(array)
    changed = has_some.map_batches(_escaped, return_dtype=pl.String(), is_elementwise=True)
    return pl.when(changed.is_not_null()).then(changed).otherwise(array)


def key_values(texts: pl.Series, kinds: Sequence[SqlType]) -> list[pl.Series]:
    """Parse keys to values, one column per part of the key."""
    if len(kinds) == 1 and kinds[0].name == "STRING" and not texts.str.starts_with("[").any():
        return [texts]
    distinct = texts.unique()
    fields = [Field((number,), kind) for number, kind in enumerate(kinds)]
    is_array = distinct.str.starts_with("[")
    plain = distinct.to_frame("k").select(json_text(pl.col("k"), STRING)).to_series()
    arrays = distinct.zip_with(is_array, "[" + plain + "]")
    columns = PayloadDecoder(fields).columns(arrays)
    found = pl.DataFrame({"key": texts}).join(
        columns.with_columns(key=distinct), on="key", how="left", maintain_order="left", nulls_equal=True
    )
    return [found[field.column] for field in fields]


def shortened(name: pl.Expr) -> pl.Expr:
    """Shorten an overlong partition name, replacing its end by its SHA-256."""
    long = name.str.len_chars() > LONGEST
    short = pl.when(long).then(name).map_batches(_shortened, return_dtype=pl.String(), is_elementwise=True)
    return pl.when(long).then(short).otherwise(name)


def _one_zero(value: pl.Expr, kind: SqlType) -> pl.Expr:
    """-0.0 and 0.0 are the same key."""
    return one_zero(value) if kind.is_float else value


def _shortened(names: pl.Series) -> pl.Series:
    short = [None if name is None else _short(name) for name in names.to_list()]
    return pl.Series(names.name, short, dtype=pl.String)


def _escaped(arrays: pl.Series) -> pl.Series:
    found = [None if each is None else _CONTROL.sub(_escape, each) for each in arrays.to_list()]
    return pl.Series(arrays.name, found, dtype=pl.String)


def _escape(match: re.Match[str]) -> str:
    return " " if match[0] < " " else f"\\u{ord(match[0]):04x}"


def _short(name: str) -> str:
    return f"{name[: LONGEST - _HASH - 1]}#{sha256(name.encode()).hexdigest()}"
