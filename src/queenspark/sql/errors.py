"""Errors of statements: position, problem and fix."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class SqlError(ValueError):
    """An invalid statement. Lines and columns count from 1."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.message}"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the closest known name, if any is close."""
    by_lower = {each.lower(): each for each in known}
    found = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Format a hint about an unknown name: `; did you mean x?`, or nothing."""
    found = nearest(name, known)
    return f"; did you mean {found}?" if found else ""
