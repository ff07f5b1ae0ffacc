"""Durations as users write them: seconds, a timedelta, or text like "5m" or "1h30m"."""

from __future__ import annotations

import math
import re
from datetime import timedelta

from .errors import InvalidValue

Duration = int | float | timedelta | str

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TOO_LONG = 1e12
LONGEST_LEASE = 86_400.0
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_WHOLE = re.compile(rf"(?:{_PART.pattern})+")


def seconds(name: str, value: Duration) -> float:
    """Return a duration in seconds; `name` is the argument named in the error."""
    found = _read(value)
    if found is None or not 0 <= found < _TOO_LONG:
        raise InvalidValue(
            f'{name} is {value!r}: use seconds, a timedelta, or a string such as "30s", "5m", "1h30m"'
        )
    return found


def lease_seconds(name: str, value: Duration) -> float:
    """Return a lease time in seconds: at most a day."""
    found = seconds(name, value)
    if found > LONGEST_LEASE:
        raise InvalidValue(
            f"{name} is {value!r}, but a lease lasts at most a day. Numbers are seconds, not milliseconds:"
            ' for milliseconds use a string such as "60000ms"'
        )
    return found


def milliseconds(name: str, value: Duration) -> int:
    """Return a duration in whole milliseconds; finer durations are rejected, not rounded."""
    exact = seconds(name, value) * 1000
    if not math.isclose(exact, round(exact), rel_tol=1e-15, abs_tol=1e-6):
        raise InvalidValue(f"{name} is {value!r}: it must be whole milliseconds")
    return round(exact)


def whole_seconds(name: str, value: Duration) -> int:
    """Return a duration in whole seconds; finer durations are rejected."""
    exact = seconds(name, value)
    if exact != round(exact):
        raise InvalidValue(f"{name} is {value!r}: it must be whole seconds")
    return round(exact)


def _read(value: Duration) -> float | None:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) if abs(value) < _TOO_LONG else None
    text = str(value).replace(" ", "")
    if _WHOLE.fullmatch(text):
        return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    try:
        return float(text)
    except ValueError:
        return None
