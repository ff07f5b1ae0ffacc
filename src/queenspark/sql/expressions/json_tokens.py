"""Tokens of JSON texts, as lenient as Jackson, Spark's parser: single quotes, raw control characters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

Kind = Literal["{", "}", "[", "]", "name", "string", "integer", "fraction", "word"]

#: Jackson's limits: nesting, digits of a number (without a leading 0), characters of a name.
_DEEPEST = 1_000
_LONGEST_NUMBER = 1_000
_LONGEST_NAME = 50_000
_ESCAPE = r"\\(?:[\"'/\\bfnrt]|u[0-9A-Fa-f]{4})"
_BLANKS = re.compile(r"[ \t\r\n]*")
_TEXT = re.compile(rf"\"([^\"\\]*(?:{_ESCAPE}[^\"\\]*)*)\"|'([^'\\]*(?:{_ESCAPE}[^'\\]*)*)'")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?![0-9])(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORD = re.compile("true|false|null")
_ESCAPED = re.compile(r"\\(?:u(.{4})|(.))")
_PLAIN = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_CLOSING: dict[str, Literal["}", "]"]] = {"{": "}", "[": "]"}


class InvalidJson(ValueError):
    """The text is not JSON."""


class Token(NamedTuple):
    """A bracket, or a scalar: the characters of a string, or a number or word as written."""

    kind: Kind
    text: str


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of the first value in a text, and ignore the text after it. Raises InvalidJson."""
    open_: list[Literal["}", "]"]] = []
    is_first = True  # in the innermost object or array
    at = _after_blanks(text, 0)
    while True:
        if open_:
            if text.startswith(open_[-1], at):
                yield Token(open_.pop(), "")
                if not open_:
                    return
                is_first, at = False, _after_blanks(text, at + 1)
                continue
            if not is_first:
                at = _after(text, at, ",")
            if open_[-1] == "}":
                name, at = _text(text, at)
                if len(name) > _LONGEST_NAME:
                    raise InvalidJson
                yield Token("name", name)
                at = _after(text, _after_blanks(text, at), ":")
        start = text[at : at + 1]
        if start in ("{", "["):
            open_.append(_CLOSING[start])
            if len(open_) > _DEEPEST:
                raise InvalidJson
            yield Token(start, "")  # type: ignore[arg-type]
            is_first, at = True, _after_blanks(text, at + 1)
            continue
        token, at = _scalar(text, at, start)
        yield token
        if not open_:
            return
        is_first, at = False, _after_blanks(text, at)


def _scalar(text: str, at: int, start: str) -> tuple[Token, int]:
    if start in ('"', "'"):
        value, end = _text(text, at)
        return Token("string", value), end
    if (word := _WORD.match(text, at)) is not None:
        return Token("word", word[0]), word.end()
    number = _NUMBER.match(text, at)
    if number is None or (len(number[0]) > _LONGEST_NUMBER and _digits(number[0]) > _LONGEST_NUMBER):
        raise InvalidJson
    return Token("integer" if number.lastindex is None else "fraction", number[0]), number.end()


def _digits(number: str) -> int:
    return sum(map(str.isdigit, number.removeprefix("-").removeprefix("0")))


def _text(text: str, at: int) -> tuple[str, int]:
    """The characters of a string, and its end. Lone surrogates are kept."""
    match = _TEXT.match(text, at)
    if match is None:
        raise InvalidJson
    value = match[1] if match[2] is None else match[2]
    if "\\" in value:
        value = _ESCAPED.sub(_unescaped, value)
        value = value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")  # joins pairs
    return value, match.end()


def _unescaped(match: re.Match[str]) -> str:
    return chr(int(match[1], 16)) if match[1] else _PLAIN.get(match[2], match[2])


def _after(text: str, at: int, symbol: str) -> int:
    if not text.startswith(symbol, at):
        raise InvalidJson
    return _after_blanks(text, at + 1)


def _after_blanks(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    assert match is not None
    return match.end()
