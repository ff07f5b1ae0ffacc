"""Tokens: found by sqlglot's Spark tokenizer, and sorted into six kinds here.

sqlglot folds `GROUP BY` into one token, splits `30s` into `30 :: SMALLINT`, reads `'it''s'` as two strings,
and takes everything after SHOW or EXPLAIN as one string. Here the tokens are those of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import Any

import msgspec
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from .source import Source
from .strings import unescaped

#: Longer texts are rejected before parsing.
LONGEST = 1_000_000

_SPARK = Dialect.get_or_raise("spark")
_SWALLOWS = {"COMMAND", "EXECUTE", "FETCH", "RENAME", "SHOW"}
_WORD = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[a-zA-Z]*")
_COMPLETE = re.compile(
    r"--[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|`[^`]*`|(?P<open>/\*|\{#|['\"`])|.", re.DOTALL
)


class Kind(Enum):
    """The kind of a token."""

    WORD = "a word"
    QUOTED = "a quoted name"
    STRING = "a string"
    NUMBER = "a number"
    SYMBOL = "a symbol"
    END = "the end"


class Token(msgspec.Struct, frozen=True):
    """A token: `text` is its value (quotes removed), `start` and `end` delimit it in the source."""

    kind: Kind
    text: str
    start: int
    end: int

    @property
    def upper(self) -> str:
        """A word or symbol in upper case, as in the grammar."""
        return self.text.upper() if self.kind in (Kind.WORD, Kind.SYMBOL) else ""


def tokenize(source: Source) -> list[Token]:
    """Tokenize a text, with an end token. Raises SqlError."""
    if len(source.text) > LONGEST:
        raise source.error(f"the text has {len(source.text)} characters; at most {LONGEST} are allowed", 0)
    tokens: list[Token] = []
    for token in _tokens(source):
        last = tokens[-1] if tokens else None
        _check_gap(source, 0 if last is None else last.end, token.start)
        if _continues(last, token, source):
            assert last is not None
            tokens[-1] = Token(Kind.STRING, f"{last.text}'{token.text}", last.start, token.end)
        else:
            tokens.append(token)
    end = len(source.text)
    _check_gap(source, tokens[-1].end if tokens else 0, end)
    return [*tokens, Token(Kind.END, "", end, end)]


def _check_gap(source: Source, at: int, end: int) -> None:
    """Allow only whitespace and comments between two tokens; sqlglot would also skip Jinja's `{# … #}`."""
    text = source.text
    while at < end:
        if text[at].isspace():
            at += 1
        elif text.startswith("--", at):
            at = _after(text, "\n", at, end)
        elif text.startswith("/*", at):
            at = _after_comment(text, at, end)
        else:
            raise source.error(f"unexpected {text[at : at + 2]!r}; write comments as -- … or /* … */", at)


def _after(text: str, what: str, at: int, end: int) -> int:
    found = text.find(what, at, end)
    return end if found < 0 else found + len(what)


def _after_comment(text: str, at: int, end: int) -> int:
    """Return the end of a comment, which can be nested."""
    depth = 0
    while at < end:
        if text.startswith("/*", at):
            depth, at = depth + 1, at + 2
        elif text.startswith("*/", at):
            depth, at = depth - 1, at + 2
            if depth == 0:
                return at
        else:
            at += 1
    return end


def _continues(last: Token | None, token: Token, source: Source) -> bool:
    """Whether a string continues one with a doubled quote: `'it''s'`."""
    if last is None or last.kind is not Kind.STRING or token.kind is not Kind.STRING:
        return False
    return last.end == token.start and source.text[token.start] == "'" == source.text[last.end - 1]


def _tokens(source: Source) -> Iterator[Token]:
    begin: int | None = 0
    while begin is not None:
        begin, found = _stretch(source, begin)
        yield from found


def _stretch(source: Source, begin: int) -> tuple[int | None, list[Token]]:
    """Return the tokens from an offset up to a command, and the offset after it."""
    try:
        raw = _SPARK.tokenize(source.text[begin:])
    except SqlglotError as error:
        raise _open_quote(source, begin) from error
    tokens: list[Token] = []
    last_start = -1
    for each in raw:
        start, end = begin + each.start, begin + each.end + 1
        if start == last_start:  # `30s` again, as its suffix
            continue
        last_start = start
        tokens += _sorted(source, each, start, end)
        if each.token_type.name in _SWALLOWS:
            return end, tokens
    return None, tokens


def _sorted(source: Source, raw: Any, start: int, end: int) -> list[Token]:
    text = source.text[start:end]
    name = raw.token_type.name
    if name == "STRING":
        return [Token(Kind.STRING, unescaped(text[1:-1]), start, end)]
    if name == "RAW_STRING" and text[0] in "rR" and text[1:2] in ("'", '"'):
        return [Token(Kind.STRING, text[2:-1], start, end)]
    if name == "IDENTIFIER":
        return [Token(Kind.QUOTED, raw.text, start, end)]
    if text[0].isdigit():
        if not _NUMBER.fullmatch(text):
            raise source.error(
                f"{text!r} is not a number; quote names that begin with a digit: `{text}`", start
            )
        return [Token(Kind.NUMBER, text, start, end)]
    if text[0].isalpha() or text[0] == "_":
        return [*_words(source, text, start)]
    if name == "VAR" or not text.isascii():
        raise source.error(f"unexpected character {text[0]!r}; quote unusual names with backquotes", start)
    return [Token(Kind.SYMBOL, text, start, end)]


def _words(source: Source, text: str, start: int) -> Iterator[Token]:
    """One word, or the words of a keyword like GROUP BY."""
    for part in re.finditer(r"\S+", text):
        begin = start + part.start()
        if not _WORD.fullmatch(part.group()):
            odd = next(c for c in part.group() if not (c.isalnum() or c == "_"))
            raise source.error(
                f"unexpected character {odd!r} in {part.group()!r}; quote unusual names with backquotes",
                begin,
            )
        yield Token(Kind.WORD, part.group(), begin, begin + len(part.group()))


def _open_quote(source: Source, begin: int) -> Exception:
    for match in _COMPLETE.finditer(source.text, begin):
        if match["open"] == "{#":
            _check_gap(source, match.start(), match.end())
        if match["open"]:
            what = "comment" if match["open"] == "/*" else f"quote {match['open']}"
            end = "*/" if match["open"] == "/*" else match["open"]
            return source.error(f"the {what} is not closed; close it with {end}", match.start())
    return source.error("this is not SQL; use plain strings, numbers and names", begin)
