"""Times on the wire: ISO 8601 in UTC, with milliseconds and a Z."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from .errors import bad_request


@lru_cache(maxsize=1024)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def iso_us(microseconds: int) -> str:
    """Format microseconds since the epoch."""
    seconds, rest = divmod(microseconds, 1_000_000)
    return f"{_second(seconds)}.{rest // 1000:03d}Z"


def iso(time: datetime | None) -> str | None:
    """Format an optional time from the database."""
    return None if time is None else iso_time(time)


def iso_time(time: datetime) -> str:
    """Format a time from the database."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_time(what: str, text: str | None) -> datetime | None:
    """Parse a time from a request: ISO 8601, UTC without a zone; raise 400."""
    if text is None or text == "":
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise bad_request(
            f"{what} ({text:.100}) must be an ISO 8601 time such as 2026-01-31T12:00:00Z"
        ) from error
    try:
        time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except OverflowError as error:
        raise bad_request(f"{what} ({text:.100}) is outside the years 1 to 9999") from error
    return time
