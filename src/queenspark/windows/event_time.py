"""Event times from payloads: a path into JSON, to microseconds.

A time is an ISO 8601 string (with an offset or a Z, else UTC) or a number: milliseconds since the epoch,
fractions allowed. Anything else is null.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import msgspec
import polars as pl

from .gregorian import END_US, FIRST_US, days_of, fraction_us, is_date, is_time

_MOST_MS = 10**15
_SECOND = 1_000_000
_NUMBERS = (int, float)  # excludes bool, an int in Python but not in JSON
_ISO = (
    r"^([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[Tt ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]+))?)?"
    r"(?:([Zz])|([+-])([0-9]{2}):?([0-9]{2})?)?)?$"
)
_DATE = ("year", "month", "day")
_TIME = ("hour", "minute", "second")
_NAMES = (*_DATE, *_TIME, "fraction", "z", "sign", "off_hour", "off_minute")

Find = Callable[[str], Any]


def event_times(payloads: pl.Series, path: str) -> pl.Series:
    """Extract the event time of each payload (JSON text) in microseconds, or null.

    The path is dotted, with numbers as list indexes: `ts`, `order.lines.0.at`. A leading `data.` is the
    payload itself, so `data.ts` is `ts`.
    """
    find = _finder(path)
    texts: list[str | None] = []
    numbers: list[int | None] = []
    for payload in payloads.to_list():
        value: Any = None if payload is None else find(payload)
        texts.append(value if type(value) is str else None)
        numbers.append(_number(value) if type(value) in _NUMBERS else None)
    micros = pl.Series("event_us", numbers, dtype=pl.Int64)
    if any(text is not None for text in texts):
        micros = micros.zip_with(micros.is_not_null(), _parsed(pl.Series("text", texts, dtype=pl.String)))
    return micros.set(((micros < FIRST_US) | (micros >= END_US)).fill_null(False), None).alias("event_us")


def steps(path: str) -> list[str]:
    """Split a path into steps, relative to the payload."""
    parts = path.split(".")
    return parts[1:] if parts[0] == "data" else parts


def _number(value: float) -> int | None:
    """Convert milliseconds to microseconds."""
    return round(value * 1000) if -_MOST_MS < value < _MOST_MS else None


def _finder(path: str) -> Find:
    """Build a lookup for a path. The decoder skips all other values."""
    names = steps(path)
    fixed = next((n for n, name in enumerate(names) if name.isdigit()), len(names))
    kind: Any = Any
    for name in reversed(names[:fixed]):
        kind = msgspec.defstruct("Step", [("value", kind | None, None)], rename={"value": name})
    decode = msgspec.json.Decoder(kind).decode
    walk: Callable[[Any], Any] = attrgetter(".".join(["value"] * fixed)) if fixed else _itself
    rest = names[fixed:]

    def find(payload: str) -> Any:
        try:
            value = walk(decode(payload))
        except (msgspec.MsgspecError, AttributeError):  # a value other than an object on the path
            return None
        for name in rest:
            if isinstance(value, list):
                value = value[int(name)] if name.isdigit() and int(name) < len(value) else None
            else:
                value = value.get(name) if isinstance(value, dict) else None
        return value

    return find


def _itself(value: Any) -> Any:
    return value


def _parsed(texts: pl.Series) -> pl.Series:
    """Parse ISO 8601 texts to microseconds by calendar arithmetic: exact and portable."""
    parts = texts.to_frame().select(pl.col("text").str.extract_groups(_ISO).struct.rename_fields(_NAMES))
    frame = parts.unnest("text")
    whole = [name for name in _NAMES if name not in ("fraction", "z", "sign")]
    frame = frame.with_columns(
        *(pl.col(name).cast(pl.Int64).alias(name) for name in whole),
        fraction=fraction_us(pl.col("fraction")),
        east=pl.when(pl.col("sign") == "-").then(-1).otherwise(1).cast(pl.Int64),
    ).with_columns(pl.col(*_TIME, "off_hour", "off_minute").fill_null(0))
    seconds = (
        days_of(*map(pl.col, _DATE)) * 86_400
        + pl.col("hour") * 3600
        + pl.col("minute") * 60
        + pl.col("second")
        - pl.col("east") * (pl.col("off_hour") * 3600 + pl.col("off_minute") * 60)
    )
    times = pl.when(_is_possible()).then(seconds * _SECOND + pl.col("fraction"))
    return frame.select(times.alias("event_us"))["event_us"]


def _is_possible() -> pl.Expr:
    """Whether the date, the time and the offset are valid."""
    return (
        is_date(*map(pl.col, _DATE))
        & is_time(*map(pl.col, _TIME))
        & (pl.col("off_hour") <= 23)
        & (pl.col("off_minute") <= 59)
    )
