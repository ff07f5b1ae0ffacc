"""Message headers: a map of strings, stored as JSON text next to the payload."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from .names import name_fault

MOST_HEADERS = 32
MOST_VALUE = 4096
RESERVED = "_"
"""The name prefix of the product's own headers."""

PRODUCER = f"{RESERVED}producer"
"""The header with the name of the caller who pushed a message, with access control on."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, str]).decode


def to_text(headers: Mapping[str, str] | None) -> str | None:
    """Encode headers for storage; None without headers."""
    return _encode(headers).decode() if headers else None


def from_text(text: str | None) -> dict[str, str] | None:
    """Decode stored headers."""
    return None if text is None else _decode(text)


def shown(text: str | None) -> tuple[dict[str, str] | None, str | None]:
    """Return the producer's own headers, and the name of the producer."""
    if text is None:
        return None, None
    headers = _decode(text)
    producer = headers.pop(PRODUCER, None)
    return headers or None, producer


def headers_size(headers: Mapping[str, str] | None) -> int:
    """The total number of characters."""
    return sum(len(name) + len(value) for name, value in headers.items()) if headers else 0


def headers_fault(headers: Mapping[str, str]) -> str | None:
    """Return why headers are invalid, if they are."""
    if len(headers) > MOST_HEADERS:
        return f"has {len(headers)} entries; the limit is {MOST_HEADERS}: put the rest into the payload"
    for name, value in headers.items():
        if fault := name_fault(name):
            return f"has a name that {fault}: {name!r:.100}"
        if name.startswith(RESERVED):
            return f"has the name {name!r}; names that begin with {RESERVED} are reserved: choose another"
        if len(value) > MOST_VALUE:
            return (
                f"has a value of {len(value)} characters under {name!r}; the limit is {MOST_VALUE}:"
                " put it into the payload"
            )
    return None
