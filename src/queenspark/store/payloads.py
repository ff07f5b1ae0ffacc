"""What payloads may look like."""

from __future__ import annotations

import re

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_OTHER = bytes(byte for byte in range(256) if byte not in b"[]{}")


def size_fault(payload: bytes, most_bytes: int) -> str | None:
    """What is wrong with the size of a payload."""
    if len(payload) <= most_bytes:
        return None
    return f"has {len(payload)} bytes; the limit of one message is {most_bytes}"


def depth_fault(payload: bytes, most_depth: int) -> str | None:
    """What is wrong with the depth of a payload, which is JSON text."""
    # Most payloads have fewer brackets than the limit has levels.
    if payload.count(b"{") + payload.count(b"[") <= most_depth or depth(payload, most_depth) <= most_depth:
        return None
    return f"is nested deeper than {most_depth} levels"


def depth(text: bytes, most: int) -> int:
    """How deep JSON text is nested, counted up to one more than `most`."""
    brackets = _STRING.sub(b"", text).translate(None, delete=_OTHER)
    level = 0
    while brackets and level <= most:
        # The innermost pairs go, one level at a time.
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
        level += 1
    return level
