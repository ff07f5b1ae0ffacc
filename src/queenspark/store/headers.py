"""Headers of messages: a map of strings beside the payload, stored as JSON text."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from .names import name_fault

MOST_HEADERS = 32
MOST_VALUE = 4096
RESERVED = "_"
"""Names that begin with this are the product's own."""

PRODUCER = f"{RESERVED}producer"
"""The header with the name of the caller who pushed a message, where access is controlled."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, str]).decode


def to_text(headers: Mapping[str, str] | None) -> str | None:
    """Headers as they are stored; None where there are none."""
    return _encode(headers).decode() if headers else None


def from_text(text: str | None) -> dict[str, str] | None:
    """Headers from their stored form."""
    return None if text is None else _decode(text)


def shown(text: str | None) -> tuple[dict[str, str] | None, str | None]:
    """The headers that a producer gave, and the name of that producer."""
    if text is None:
        return None, None
    headers = _decode(text)
    producer = headers.pop(PRODUCER, None)
    return headers or None, producer


def headers_size(headers: Mapping[str, str] | None) -> int:
    """How many characters headers have."""
    return sum(len(name) + len(value) for name, value in headers.items()) if headers else 0


def headers_fault(headers: Mapping[str, str]) -> str | None:
    """What is wrong with the headers that somebody wants to push, if anything."""
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
