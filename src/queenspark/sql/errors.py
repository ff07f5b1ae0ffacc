"""Errors of statements: each one says where, what is wrong, and what would be right."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class SqlError(ValueError):
    """A statement that cannot be run. Lines and columns count from 1."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.message}"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like this one, if any is close."""
    by_lower = {each.lower(): each for each in known}
    found = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: `; did you mean x?`, or nothing."""
    found = nearest(name, known)
    return f"; did you mean {found}?" if found else ""
