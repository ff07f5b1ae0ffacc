"""Times from strings: Spark's formats, except names of time zones and times without a date."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import polars as pl

from ...windows.gregorian import END_US, FIRST_US, days_of, fraction_us, is_date, is_time
from .times import DAY_US, from_micros

_DAY = r"(?P<year>[0-9]{4})(?:-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2})"
_HOUR = r"(?P<hour>[0-9]{1,2})"
_MINUTE = r"(?P<minute>[0-9]{1,2})"
_SECOND = r"(?P<second>[0-9]{1,2})(?:\.(?P<fraction>[0-9]*))?"
_ZONE = (
    r"(?: ?(?P<utc>Z|UTC|GMT)| ?(?:UTC|GMT)?(?P<sign>[+-])(?P<off_hour>[0-9]{1,2})"
    r"(?::(?P<off_minute>[0-9]{1,2})(?::(?P<off_second>[0-9]{1,2}))?)?)?"
)
_TIMESTAMP = rf"\A{_DAY}(?:[T ]{_HOUR}(?::{_MINUTE}(?::{_SECOND}{_ZONE})?)?)?)?)?\z"
_ISO_ZONE = r"(?:(?P<utc>[Zz])|(?P<sign>[+-])(?P<off_hour>[0-9]{2}):?(?P<off_minute>[0-9]{2})?)?"
_ISO = rf"\A{_DAY}(?:[Tt ]{_HOUR}:{_MINUTE}(?::{_SECOND})?{_ISO_ZONE})?)?)?\z"
_DATE = rf"\A{_DAY}(?s:[T ].*)?)?)?\z"
_PLAIN = (
    r"\A(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-[0-9]{2}-[0-9]{2}"
    r"T[0-2][0-9]:[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?Z\z"
)
_PLAIN_FORMAT = "%Y-%m-%dT%H:%M:%S%.fZ"
_FEW = 5_000
_NUMBERS = ("year", "month", "day", "hour", "minute", "second", "off_hour", "off_minute", "off_second")


def date_of_text(text: pl.Expr) -> pl.Expr:
    """Parse a DATE; NULL if the text is invalid."""
    part = _parts(text, _DATE)
    date = part["year"], part["month"], part["day"]
    days = pl.when(is_date(*date)).then(days_of(*date))
    return days.cast(pl.Int32, strict=False).cast(pl.Date)


def timestamp_of_text(text: pl.Expr) -> pl.Expr:
    """Parse a TIMESTAMP as CAST does; NULL if the text is invalid."""
    return _quickly(text, _TIMESTAMP)


def timestamp_of_iso(text: pl.Expr) -> pl.Expr:
    """Parse a TIMESTAMP of a payload: ISO 8601, also with an offset after minutes or without a colon."""
    return _quickly(text, _ISO)


def iso_timestamps(texts: Sequence[str | None]) -> pl.Series:
    """Do the same for payload values: the rare formats cost nothing if there are none."""
    column = pl.Series("text", texts, dtype=pl.String)
    if len(texts) > _FEW:  # compiling a regular expression takes as long as parsing some thousand times
        is_plain = column.str.contains(_PLAIN).fill_null(False)
        plain = column.to_frame().select(
            pl.col("text").str.to_datetime(_PLAIN_FORMAT, strict=False, time_unit="us").alias("text")
        )["text"]
        plain = plain.zip_with(is_plain, pl.Series("text", [None], dtype=plain.dtype))
    else:
        read = [None if text is None else _plain(text) for text in texts]
        plain = pl.Series("text", read, dtype=pl.Datetime("us"))
    plain = plain.dt.replace_time_zone("UTC")
    rare = column.zip_with(plain.is_null(), pl.Series("text", [None], dtype=pl.String))
    if rare.null_count() == rare.len():
        return plain
    slow = rare.to_frame().select(timestamp_of_iso(pl.col("text")))["text"]
    return plain.zip_with(plain.is_not_null(), slow)


def _plain(text: str) -> datetime | None:
    """Parse a text in the form 2026-01-31T12:00:00.5Z, or return None."""
    if len(text) < 20 or text[4] != "-" or text[7] != "-" or text[10] != "T" or text[13] != ":":
        return None
    rest = text[19:]
    if rest != "Z" and not (rest[0] == "." and rest[-1] == "Z" and rest[1:-1].isdigit()):
        return None
    try:
        return datetime.fromisoformat(text[:-1]) if text[5] != "W" else None
    except ValueError:
        return None


def _quickly(text: pl.Expr, pattern: str) -> pl.Expr:
    """Take a fast path: most times have one form, which polars parses faster than a regular expression."""
    plain = text.str.contains(_PLAIN).fill_null(False)
    quick = pl.when(plain).then(text).str.to_datetime(_PLAIN_FORMAT, strict=False, time_unit="us")
    slow = _moment(_parts(pl.when(~plain).then(text), pattern))
    return pl.when(plain).then(quick.dt.replace_time_zone("UTC")).otherwise(slow)


def _moment(part: dict[str, pl.Expr]) -> pl.Expr:
    date = part["year"], part["month"], part["day"]
    seconds = part["hour"] * 3600 + part["minute"] * 60 + part["second"]
    offset_second = part.get("off_second", pl.lit(0, dtype=pl.Int64))
    offset = part["off_hour"] * 3600 + part["off_minute"] * 60 + offset_second
    offset = pl.when(part["sign"] == "-").then(-offset).otherwise(offset)
    possible = (
        is_date(*date)
        & is_time(part["hour"], part["minute"], part["second"])
        & (part["off_minute"] <= 59)
        & (offset_second <= 59)
        & (offset.abs() <= 18 * 3600)
    )
    micros = days_of(*date) * DAY_US + (seconds - offset) * 1_000_000 + fraction_us(part["fraction"])
    return from_micros(pl.when(possible & (micros >= FIRST_US) & (micros < END_US)).then(micros))


def _parts(text: pl.Expr, pattern: str) -> dict[str, pl.Expr]:
    groups = text.str.extract_groups(pattern)
    found: dict[str, pl.Expr] = {}
    for name in (*_NUMBERS, "fraction", "sign"):
        if f"<{name}>" not in pattern:
            continue
        field = groups.struct.field(name)
        if name in _NUMBERS:
            default = 1 if name in ("month", "day") else 0
            field = field.cast(pl.Int64, strict=False)
            found[name] = field if name == "year" else field.fill_null(default)
        else:
            found[name] = field
    return found
