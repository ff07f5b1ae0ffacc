"""The text of statements, and where in it a thing is."""

from __future__ import annotations

from bisect import bisect_right

import msgspec

from .errors import SqlError


class Span(msgspec.Struct, frozen=True, eq=False):
    """Where something was written. All spans are equal: a statement is the same wherever it stands."""

    line: int
    column: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Span)

    def __hash__(self) -> int:
        return 0

    def error(self, message: str) -> SqlError:
        """An error here."""
        return SqlError(message, self.line, self.column)


NOWHERE = Span(1, 1)


class Source:
    """Statements as they were typed."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._lines = [0, *(n + 1 for n, character in enumerate(text) if character == "\n")]

    def span(self, offset: int) -> Span:
        """The place of a character."""
        line = bisect_right(self._lines, offset)
        return Span(line, offset - self._lines[line - 1] + 1)

    def error(self, message: str, offset: int) -> SqlError:
        """An error at a character."""
        return self.span(offset).error(message)
