"""What names and payloads may look like."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Raw

from ..store.definitions import WINDOW_QUEUES
from ..store.names import ids_fault, name_fault
from .errors import ApiError, bad_request

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_OTHER = bytes(byte for byte in range(256) if byte not in b"[]{}")


def check_name(what: str, name: str) -> str:
    """A name of 1 to 255 characters without control characters, or 400."""
    if fault := name_fault(name):
        raise bad_request(f"{what} {fault}")
    return name


def check_queue(what: str, name: str) -> str:
    """The name of a queue that anybody may push to, configure and delete, or 400."""
    if name.startswith(WINDOW_QUEUES):
        raise bad_request(
            f"{what}: names that begin with {WINDOW_QUEUES} are the window queues of streams;"
            " choose another, or see /api/v1/stream"
        )
    return check_name(what, name)


def check_ids(what: str, ids: Iterable[str]) -> None:
    """Transaction and trace ids, many at once."""
    if fault := ids_fault(ids):
        raise bad_request(f"{what} {fault}")


def check_payloads(payloads: Iterable[Raw], body_bytes: int, most_bytes: int, most_depth: int) -> None:
    """Size and depth of payloads, or 413 and 400."""
    for payload in payloads:
        text = bytes(payload)
        if body_bytes > most_bytes and len(text) > most_bytes:
            raise ApiError(413, f"a payload has {len(text)} bytes; the limit of one message is {most_bytes}")
        if text.count(b"{") + text.count(b"[") > most_depth and depth(text, most_depth) > most_depth:
            raise bad_request(f"a payload is nested deeper than {most_depth} levels")


def depth(text: bytes, most: int) -> int:
    """How deep JSON text is nested, counted up to one more than `most`."""
    brackets = _STRING.sub(b"", text).translate(None, delete=_OTHER)
    level = 0
    while brackets and level <= most:
        # The innermost pairs go, one level at a time.
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
        level += 1
    return level
