"""Limits on names, headers and payloads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Raw

from ..formats.definition import LONGEST_LEASE_MS
from ..store.definitions import WINDOW_QUEUES
from ..store.headers import headers_fault
from ..store.names import ids_fault, name_fault
from ..store.payloads import depth_fault, size_fault
from .errors import ApiError, bad_request


def check_name(what: str, name: str) -> str:
    """Check a name: 1 to 255 characters, no control characters; raise 400."""
    if fault := name_fault(name):
        raise bad_request(f"{what} {fault}")
    return name


def check_lease(what: str, value: int, unit: Literal["seconds", "milliseconds"]) -> int:
    """Check a lease time: at most a day; raise 400."""
    most = LONGEST_LEASE_MS if unit == "milliseconds" else LONGEST_LEASE_MS // 1000
    if value > most:
        other = "milliseconds" if unit == "seconds" else "seconds"
        raise bad_request(f"{what} ({value}) must not exceed {most}, a day; it is in {unit}, not {other}")
    return value


def check_queue(what: str, name: str) -> str:
    """Check the name of a user's queue (not a window queue); raise 400."""
    if name.startswith(WINDOW_QUEUES):
        raise bad_request(
            f"{what}: names that start with {WINDOW_QUEUES} are reserved for window queues;"
            " choose another name, or use /api/v1/stream"
        )
    return check_name(what, name)


def check_ids(what: str, ids: Iterable[str]) -> None:
    """Check transaction and trace ids, many at once."""
    if fault := ids_fault(ids):
        raise bad_request(f"{what} {fault}")


def check_headers(headers: Iterable[Mapping[str, str] | None]) -> None:
    """Check number, names and lengths of headers; raise 400."""
    for each in headers:
        if each and (fault := headers_fault(each)):
            raise bad_request(f"headers {fault}")


def check_payloads(payloads: Iterable[Raw], body_bytes: int, most_bytes: int, most_depth: int) -> None:
    """Check size and depth of payloads; raise 413 or 400."""
    for payload in payloads:
        text = bytes(payload)
        if body_bytes > most_bytes and (fault := size_fault(text, most_bytes)):
            raise ApiError(413, f"a payload {fault}")
        if fault := depth_fault(text, most_depth):
            raise bad_request(f"a payload {fault}")
