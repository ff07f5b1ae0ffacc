"""Limits on payloads."""

from __future__ import annotations

import re

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_OTHER = bytes(byte for byte in range(256) if byte not in b"[]{}")


def size_fault(payload: bytes, most_bytes: int) -> str | None:
    """Return why the size of a payload is invalid, if it is."""
    if len(payload) <= most_bytes:
        return None
    return f"has {len(payload)} bytes; the limit of one message is {most_bytes}"


def depth_fault(payload: bytes, most_depth: int) -> str | None:
    """Return why the depth of a JSON payload is invalid, if it is."""
    # Most payloads have fewer brackets than the depth limit.
    if payload.count(b"{") + payload.count(b"[") <= most_depth or depth(payload, most_depth) <= most_depth:
        return None
    return f"is nested deeper than {most_depth} levels"


def depth(text: bytes, most: int) -> int:
    """Return the nesting depth of JSON text, counted up to `most` + 1."""
    brackets = _STRING.sub(b"", text).translate(None, delete=_OTHER)
    level = 0
    while brackets and level <= most:
        # Remove the innermost pairs, one level at a time.
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
        level += 1
    return level
