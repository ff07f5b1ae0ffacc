"""Limits on names of queues and partitions, and on ids of messages."""

from __future__ import annotations

import re
from collections.abc import Iterable

MOST_NAME = 255
MOST_TRANSACTION_ID = 512
_CONTROL = re.compile("[\x00-\x1f\x7f]")


def name_fault(name: str) -> str | None:
    """Return why a name is invalid, if it is: 1 to 255 characters, no control characters."""
    if not name:
        return "must not be empty"
    if len(name) > MOST_NAME:
        return f"is {len(name)} characters long; the limit is {MOST_NAME}"
    if _CONTROL.search(name):
        return "must not contain control characters"
    return None


def ids_fault(ids: Iterable[str]) -> str | None:
    """Return why transaction or trace ids are invalid, if they are; many at once."""
    known = list(ids)
    if _CONTROL.search("".join(known)):
        return "must not contain control characters"
    if known and len(longest := max(known, key=len)) > MOST_TRANSACTION_ID:
        return f"is {len(longest)} characters long; the limit is {MOST_TRANSACTION_ID}"
    return None
