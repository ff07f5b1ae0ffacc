"""Aggregates over the values at a path, and grouping by them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

import msgspec

Number = int | float
Group = TypeVar("Group")


def numbers(values: Iterable[Any]) -> list[Number]:
    """Return the numbers among values; booleans do not count as numbers."""
    return [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]


def total(found: list[Number]) -> Number:
    """Return the sum: exact for integers, without drift for floats."""
    if all(isinstance(value, int) for value in found):
        return sum(found)
    try:
        return math.fsum(found)
    except OverflowError:  # beyond the range of a float
        return sum(found)


def _average(found: list[Number]) -> float | None:
    return total(found) / len(found) if found else None


def _percentile(share: float) -> Callable[[list[Number]], Number | None]:
    def of(found: list[Number]) -> Number | None:
        if not found:
            return None
        ordered = sorted(found)
        index = share * (len(ordered) - 1)
        below = math.floor(index)
        if index == below:
            return ordered[below]
        return ordered[below] + (ordered[below + 1] - ordered[below]) * (index - below)

    return of


#: Aggregates over the numbers at a path. Without numbers, `sum` is 0 and all others are None.
OVER_NUMBERS: dict[str, Callable[[list[Number]], Number | None]] = {
    "sum": total,
    "avg": _average,
    "min": lambda found: min(found, default=None),
    "max": lambda found: max(found, default=None),
    "p50": _percentile(0.5),
    "p95": _percentile(0.95),
    "p99": _percentile(0.99),
}


def token(value: Any) -> tuple[str, Any]:
    """Return the identity of a JSON value: 1 and 1.0 are the same number, 1 and true are different values."""
    if isinstance(value, bool):
        return "boolean", value
    if isinstance(value, dict | list):
        return "json", msgspec.json.encode(value, order="sorted")
    return "plain", value


class Groups(Mapping[Any, Group], Generic[Group]):
    """Groups keyed by their common value, ordered by first message.

    0, '', False and None are ordinary keys, and 0 differs from False. A key may be a list or an object.
    """

    def __init__(self) -> None:
        self._groups: dict[tuple[str, Any], tuple[Any, Group]] = {}

    def __getitem__(self, key: Any) -> Group:
        return self._groups[token(key)][1]

    def __iter__(self) -> Iterator[Any]:
        return (key for key, _ in self._groups.values())

    def __len__(self) -> int:
        return len(self._groups)

    def __repr__(self) -> str:
        return f"Groups({', '.join(f'{key!r}: {group!r}' for key, group in self._groups.values())})"

    def add(self, key: Any, make: Callable[[], Group]) -> Group:
        """Return the group of a key, creating it if needed."""
        return self._groups.setdefault(token(key), (key, make()))[1]
