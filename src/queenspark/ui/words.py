"""Numbers, durations and times as text for people."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any


def number(value: float | None) -> str:
    """A count: 950, 12,400, 1.2 M."""
    if value is None:
        return "–"
    if abs(value) >= 10_000_000:
        return f"{value / 1e6:,.0f} M"
    if abs(value) >= 1_000_000:
        return f"{value / 1e6:.1f} M"
    return f"{value:,.0f}"


def rate(value: float | None) -> str:
    """A rate per second: 0, 0.02, 0.4, 12, 1,200."""
    if not value:
        return "0"
    if value < 0.1:
        return f"{max(value, 0.01):.2f}"
    return f"{value:.1f}" if value < 10 else f"{value:,.0f}"


def duration(seconds: float | None) -> str:
    """A duration: 40 ms, 3.2 s, 4 min, 2 h, 3 d."""
    if seconds is None:
        return "–"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


def milliseconds(value: float | None) -> str:
    """A duration given in milliseconds."""
    return "–" if value is None else duration(value / 1000)


def parsed(text: str | None) -> datetime | None:
    """Parse a time of the API."""
    return None if not text else datetime.fromisoformat(text)


def ago(text: str | None) -> str:
    """How long ago a time was."""
    time = parsed(text)
    if time is None:
        return "never"
    seconds = (datetime.now(UTC) - time).total_seconds()
    return "now" if seconds < 1.5 else f"{duration(seconds)} ago"


def clock(text: str | None) -> str:
    """The time of day in UTC, with the date unless it is today."""
    time = parsed(text)
    if time is None:
        return "–"
    if time.year > 9000:
        return "the end"
    today = datetime.now(UTC).date()
    return f"{time:%H:%M:%S}" if time.date() == today else f"{time:%Y-%m-%d %H:%M:%S}"


def size(count: float | None) -> str:
    """Bytes: 12 kB, 3.4 MB."""
    value = float(count or 0)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 10 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def plural(count: int, noun: str) -> str:
    """A count with its noun."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def shape(stream: dict[str, Any]) -> str:
    """Describe the windows of a stream."""
    kind = stream["windowType"]
    match kind:
        case "tumbling":
            return f"tumbling, {milliseconds(stream['windowDurationMs'] or 60_000)}"
        case "sliding":
            length, slide = stream["windowDurationMs"] or 60_000, stream["windowSlideMs"]
            return f"sliding, {milliseconds(length)} every {milliseconds(slide)}"
        case "session":
            return f"sessions, gap {milliseconds(stream['windowGapMs'])}"
        case _:
            return f"{kind}, {stream['windowSizeCount']} records"
