"""A cursor over the tokens of a text, with the parser's primitives."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..formats.sql_words import RESERVED
from .duration import FORMS, interval, short_duration
from .errors import SqlError, did_you_mean
from .source import Source, Span
from .tokens import Kind, Token, tokenize

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Maximum nesting of parentheses, calls and so on.
DEEPEST = 60


class Cursor:
    """Reads tokens one by one; tokens that one parser leaves go to the next."""

    def __init__(self, text: str) -> None:
        self._source = Source(text)
        self._tokens = tokenize(self._source)
        self._at = 0
        self._nesting = 0

    @property
    def token(self) -> Token:
        """The next token."""
        return self._tokens[self._at]

    @property
    def span(self) -> Span:
        """The source location of the next token."""
        return self._source.span(self.token.start)

    def after(self, count: int = 1) -> Token:
        """Return the token that many positions ahead."""
        return self._tokens[min(self._at + count, len(self._tokens) - 1)]

    def next(self) -> Token:
        """Consume the next token."""
        token = self.token
        if token.kind is not Kind.END:
            self._at += 1
        return token

    def at(self, *kinds: Kind) -> bool:
        """Whether the next token is of one of these kinds."""
        return self.token.kind in kinds

    def sees(self, *words: str) -> bool:
        """Whether these words or symbols come next."""
        return all(self.after(n).upper == word for n, word in enumerate(words))

    def sees_any(self, words: Iterable[str]) -> bool:
        """Whether one of these comes next."""
        return self.token.upper in words

    def takes(self, *words: str) -> bool:
        """Consume these words or symbols if they come next."""
        if not self.sees(*words):
            return False
        for _ in words:
            self.next()
        return True

    def expect(self, *words: str) -> None:
        """Consume these words or symbols, or fail."""
        for word in words:
            if not self.takes(word):
                raise self.expected(word, [word])

    def choice(self, words: Iterable[str], what: str) -> str:
        """Consume one of these words."""
        words = list(words)
        if self.at(Kind.WORD) and self.token.upper in words:
            return self.next().upper
        raise self.expected(f"{what} ({', '.join(words)})", words)

    def name(self, what: str) -> str:
        """Consume a name, quoted or not."""
        token = self.token
        if token.kind is Kind.QUOTED:
            if not token.text:
                raise self.error("a name must not be empty")
            return self.next().text
        if token.kind is not Kind.WORD:
            raise self.expected(what)
        if token.upper in RESERVED:
            raise self.error(
                f"expected {what}, found the keyword {token.upper}; "
                f"quote it to use it as a name: `{token.text}`"
            )
        return self.next().text

    def dotted_name(self, what: str) -> str:
        """Consume a name with an optional namespace: `shop.orders`."""
        parts = [self.name(what)]
        while self.takes("."):
            parts.append(self.name(f"the rest of {what} after the dot"))
        return ".".join(parts)

    def string(self, what: str) -> str:
        """Consume a string."""
        if not self.at(Kind.STRING):
            raise self.expected(f"{what}, a string in quotes")
        return self.next().text

    def whole_number(self, what: str, least: int, most: int) -> int:
        """Consume an integer within limits."""
        token = self.token
        if token.kind is not Kind.NUMBER or not token.text.isdigit():
            raise self.expected(f"{what}, a whole number")
        value = int(token.text) if len(token.text) < 20 else most + 1
        if not least <= value <= most:
            raise self.error(f"{what} is {token.text}; it must be from {least} to {most}")
        self.next()
        return value

    def sees_duration(self) -> bool:
        """Whether a duration comes next."""
        return (self.at(Kind.NUMBER) and short_duration(self.token.text) is not None) or self.sees("INTERVAL")

    def duration(self, what: str) -> int:
        """Consume a duration, in microseconds: at least one."""
        start = self.span
        text = self.token.text
        if self.takes("INTERVAL"):
            value = self.interval()
        else:
            found = short_duration(text) if self.at(Kind.NUMBER) else None
            if found is None:
                raise self.expected(f"{what}: {FORMS}")
            self.next()
            value = found
        if value <= 0:
            raise start.error(f"{what} must be longer than zero")
        return value

    def interval(self) -> int:
        """Consume the rest of `INTERVAL '5' MINUTE`."""
        start = self.span
        if not self.at(Kind.STRING, Kind.NUMBER):
            raise self.expected("a number, as in INTERVAL '5' MINUTE")
        number, unit = self.next().text, self.token.text
        value = interval(number, unit) if self.at(Kind.WORD) else None
        if value is None:
            raise start.error(
                f"{number!r} {unit} is not an interval; write a whole number and DAY, HOUR, MINUTE or "
                "SECOND, as in INTERVAL '5' MINUTE"
            )
        self.next()
        return value

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Limit the nesting depth."""
        self._nesting += 1
        if self._nesting > DEEPEST:
            raise self.error(f"the expression is nested too deeply; at most {DEEPEST} levels are allowed")
        yield
        self._nesting -= 1

    def error(self, message: str) -> SqlError:
        """Build an error at the next token."""
        return self.span.error(message)

    def expected(self, what: str, words: Iterable[str] = ()) -> SqlError:
        """Build an error: something else was expected."""
        hint = did_you_mean(self.token.text, words) if self.at(Kind.WORD) else ""
        return self.error(f"expected {what}, found {self.found()}{hint}")

    def found(self) -> str:
        """The next token, for messages."""
        token = self.token
        if token.kind is Kind.END:
            return "the end of the text"
        text = self._source.text[token.start : token.end]
        return text if len(text) <= 40 else f"{text[:40]}…"
