"""Functions on JSON texts. As in Spark, a text that is not JSON gives NULL."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from ..source import Span
from ..types import ARRAY_OF_STRINGS, INT, STRING, SqlType
from .compiled import Argument, Compiled
from .java_numbers import double_text, per_value
from .json_tokens import InvalidJson, Token, tokens
from .text import constant_string, string

_STEP = re.compile(r"\.([^\s.*\[\]'\"?]+)|\['([^\s'?][^'?]*)'\]|\[([0-9]{1,9})\]")
_NULL = Token("word", "null")
_ESCAPED = re.compile('["\\\\\x00-\x1f\ud800-\udfff\U00010000-\U0010ffff]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def get_json_object(text: Argument, path: Argument) -> Compiled:
    """GET_JSON_OBJECT with a constant path."""
    steps = _steps(constant_string(path, "the path"), path.span)
    return _of_json(text, STRING, lambda token, rest: _found(token, rest, steps))


def json_array_length(text: Argument) -> Compiled:
    """JSON_ARRAY_LENGTH."""
    return _of_json(text, INT, _length)


def json_object_keys(text: Argument) -> Compiled:
    """JSON_OBJECT_KEYS."""
    return _of_json(text, ARRAY_OF_STRINGS, _keys)


def _of_json(text: Argument, kind: SqlType, function: Callable[[Token, Iterator[Token]], Any]) -> Compiled:
    """Compile a function of the tokens of a text: the first one, and the rest, to be read to the end."""

    def apply(value: str) -> Any:
        rest = tokens(value)
        try:
            return function(next(rest), rest)
        except InvalidJson:
            return None

    a = string(text)
    return Compiled(per_value(a.value, apply, kind.column), kind, a.error)


def _steps(path: str, span: Span) -> list[str | int]:
    """The names and indexes of a path."""
    steps: list[str | int] = []
    at = 1
    while match := _STEP.match(path, at):
        steps.append(match[1] or match[2] or int(match[3]))
        at = match.end()
    if not path.startswith("$") or not steps or at < len(path) or "*" in steps:
        raise span.error(
            f"the path {path!r} is not supported; write names and indexes: '$.name', '$.items[0]', "
            "'$[''a name'']'"
        )
    return steps


def _found(token: Token, rest: Iterator[Token], steps: list[str | int]) -> str | None:
    """Return the value at a path: the characters of a string, or JSON; of equal names the first value."""
    if not steps:
        return _checked(token.text) if token.kind == "string" else _copied(token, rest)
    first, *later = steps
    found: str | None = None
    if token.kind == "{" and isinstance(first, str):
        while (name := next(rest)).kind != "}":
            value = next(rest)
            if found is None and name.text == first and value != _NULL:
                found = _found(value, rest, later)
            else:
                _skip(value, rest)
    elif token.kind == "[" and isinstance(first, int):
        number = 0
        while (value := next(rest)).kind != "]":
            if number == first:
                found = _found(value, rest, later)
            else:
                _skip(value, rest)
            number += 1
    else:
        _skip(token, rest)
    return found


def _length(token: Token, rest: Iterator[Token]) -> int | None:
    if token.kind != "[":
        return None
    number = 0
    while (value := next(rest)).kind != "]":
        _skip(value, rest)
        number += 1
    return number


def _keys(token: Token, rest: Iterator[Token]) -> list[str] | None:
    if token.kind != "{":
        return None
    names = []
    while (name := next(rest)).kind != "}":
        names.append(name.text.encode(errors="replace").decode())
        _skip(next(rest), rest)
    return names


def _skip(token: Token, rest: Iterator[Token]) -> None:
    """Read a value to its end."""
    for _ in _value(token, rest):
        pass


def _value(token: Token, rest: Iterator[Token]) -> Iterator[Token]:
    """Yield the tokens of one value."""
    depth = 0
    while True:
        yield token
        depth += (token.kind in ("{", "[")) - (token.kind in ("}", "]"))
        if not depth:
            return
        token = next(rest)


def _copied(token: Token, rest: Iterator[Token]) -> str:
    """Return a value as JSON without blanks; fractions are formatted as DOUBLEs."""
    parts: list[str] = []
    for kind, text in _value(token, rest):
        if parts and kind not in ("}", "]") and parts[-1] not in ("{", "[", ":"):
            parts.append(",")
        match kind:
            case "name":
                parts += [_quoted(text), ":"]
            case "string":
                parts.append(_quoted(text))
            case "integer":
                parts.append(text if text != "-0" else "0")
            case "fraction":
                number = double_text(float(text))
                parts.append(f'"{number}"' if number.endswith("y") else number)
            case "word":
                parts.append(text)
            case _:
                parts.append(kind)
    return "".join(parts)


def _quoted(text: str) -> str:
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    """Escape a character as Jackson does: those beyond 16 bits as two surrogates."""
    character = match[0]
    if character in _SHORT:
        return _SHORT[character]
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex().upper()}" for at in range(0, len(units), 2))


def _checked(text: str) -> str:
    """Return a text without lone surrogates; raises InvalidJson."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidJson from error
    return text
