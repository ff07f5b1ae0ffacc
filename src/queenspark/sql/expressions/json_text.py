"""JSON values of texts."""

from __future__ import annotations

from collections import deque

import msgspec
import polars as pl

_skim = msgspec.json.Decoder(msgspec.Raw).decode
_BLANKS = " \t\r\n"


def json_of_text(text: pl.Expr) -> pl.Expr:
    """Return each text that is exactly one JSON value, with all its digits; NULL for others."""
    return text.str.strip_chars(_BLANKS).map_batches(_valid, return_dtype=pl.String(), is_elementwise=True)


def _valid(texts: pl.Series) -> pl.Series:
    try:
        deque(map(_skim, texts.drop_nulls().to_list()), maxlen=0)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return pl.Series(texts.name, [_checked(text) for text in texts.to_list()], dtype=pl.String)
    return texts


def _checked(text: str | None) -> str | None:
    if text is not None:
        try:
            _skim(text)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return None
    return text
