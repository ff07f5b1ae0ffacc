"""Types of a queue without a schema, from a sample of its payloads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from .payload import BAD_JSON
from .types import BIGINT, BOOLEAN, DOUBLE, JSON, MOST_DIGITS, STRING, SqlType, decimal

Path = tuple[str | int, ...]
#: Maximum depth of inspected objects.
DEEPEST = 6
_LONG = decimal(MOST_DIGITS, 0)


def sampled_paths(payloads: Iterable[str | bytes]) -> dict[Path, SqlType]:
    """Return the type of each path: integers, floats, booleans and strings have their own.

    Objects and arrays are JSON, and so is everything below an array. Values of mixed types are STRINGs. A
    path with only nulls, and a payload that is not JSON, contribute nothing.
    """
    found: dict[Path, SqlType] = {}
    for payload in payloads:
        try:
            value = msgspec.json.decode(payload)
        except BAD_JSON:
            continue
        if isinstance(value, dict):
            _inspect(value, (), found)
    return found


def _inspect(value: dict[str, Any], path: Path, found: dict[Path, SqlType]) -> None:
    for name, below in value.items():
        kind = _type(below)
        if kind is None:
            continue
        here = (*path, name)
        found[here] = _both(found.get(here, kind), kind)
        if isinstance(below, dict) and len(here) < DEEPEST:
            _inspect(below, here, found)


def _type(value: Any) -> SqlType | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int):
        if BIGINT.least <= value <= BIGINT.most:
            return BIGINT
        return _LONG if abs(value) < 10**MOST_DIGITS else DOUBLE
    if isinstance(value, float):
        return DOUBLE
    return STRING if isinstance(value, str) else JSON


def _both(one: SqlType, other: SqlType) -> SqlType:
    if one == other:
        return one
    if one.is_numeric and other.is_numeric:
        return DOUBLE if DOUBLE in (one, other) else _LONG
    return STRING
