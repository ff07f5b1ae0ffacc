"""The source text of statements, with locations."""

from __future__ import annotations

from bisect import bisect_right

import msgspec

from .errors import SqlError


class Span(msgspec.Struct, frozen=True, eq=False):
    """A source location. All spans are equal: a statement does not depend on its location."""

    line: int
    column: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Span)

    def __hash__(self) -> int:
        return 0

    def error(self, message: str) -> SqlError:
        """Build an error at this location."""
        return SqlError(message, self.line, self.column)


NOWHERE = Span(1, 1)


class Source:
    """The text of statements as entered."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._lines = [0, *(n + 1 for n, character in enumerate(text) if character == "\n")]

    def span(self, offset: int) -> Span:
        """Return the location of a character."""
        line = bisect_right(self._lines, offset)
        return Span(line, offset - self._lines[line - 1] + 1)

    def error(self, message: str, offset: int) -> SqlError:
        """Build an error at a character."""
        return self.span(offset).error(message)
