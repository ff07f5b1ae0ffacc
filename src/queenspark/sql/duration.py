"""Durations: `500ms`, `30s`, `5m`, `1h`, `1d` and `INTERVAL '5' MINUTE`, in microseconds."""

from __future__ import annotations

import re

_UNITS = {"d": 86_400_000_000, "h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1_000}
INTERVAL_UNITS = {
    "DAY": _UNITS["d"], "HOUR": _UNITS["h"], "MINUTE": _UNITS["m"], "SECOND": _UNITS["s"],
    "MILLISECOND": 1_000, "MICROSECOND": 1,
}  # fmt: skip
_SHORT = re.compile(r"(\d+)(ms|s|m|h|d)", re.IGNORECASE)
_INTERVAL_NUMBER = re.compile(r"[+-]?\d+")

#: The longest duration in a statement: about 36,000 years.
LONGEST_US = 2**60
FORMS = "500ms, 30s, 5m, 1h, 1d or INTERVAL '5' MINUTE"


def short_duration(text: str) -> int | None:
    """Parse `5m` to microseconds; None if it is not a duration."""
    match = _SHORT.fullmatch(text.strip())
    if match is None:
        return None
    value = int(match[1]) * _UNITS[match[2].lower()] if len(match[1]) < 20 else LONGEST_US + 1
    return value if value <= LONGEST_US else None


def interval(number: str, unit: str) -> int | None:
    """Parse `INTERVAL 'number' UNIT` to microseconds; None if it is not an interval of fixed length."""
    unit = unit.upper().removesuffix("S")
    if unit not in INTERVAL_UNITS or len(number) > 20 or not _INTERVAL_NUMBER.fullmatch(number.strip()):
        return None
    value = int(number) * INTERVAL_UNITS[unit]
    return value if abs(value) <= LONGEST_US else None


def duration_text(microseconds: int) -> str:
    """Format a duration in its shortest form."""
    for unit, size in _UNITS.items():
        if microseconds % size == 0:
            return f"{microseconds // size}{unit}"
    return interval_text(microseconds)


def interval_text(microseconds: int) -> str:
    """Format a duration as an INTERVAL."""
    for unit, size in INTERVAL_UNITS.items():
        if microseconds % size == 0:
            return f"INTERVAL '{microseconds // size}' {unit}"
    raise AssertionError("a microsecond divides every duration")
