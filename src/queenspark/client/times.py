"""Times as users write them: an aware datetime or ISO 8601 text."""

from __future__ import annotations

from datetime import datetime

from .errors import InvalidValue


def as_time(name: str, value: datetime | str) -> str:
    """Return a time in its wire format; `name` is the argument named in the error."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise InvalidValue(f"{name} is {value!r}: use a datetime with a time zone")
        return value.isoformat()
    try:
        datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise InvalidValue(
            f"{name} is {value!r}: use a datetime, or an ISO 8601 time such as 2026-01-31T10:00:00Z"
        ) from None
    return value
