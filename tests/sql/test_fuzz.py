"""Mutated statements give a statement or an SqlError; no token is ignored."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from queenspark.sql import SqlError, canonical, parse
from queenspark.sql.duration import duration_text, interval, short_duration
from queenspark.sql.source import Source
from queenspark.sql.tokens import Kind, Token, tokenize
from queenspark.sql.type_parser import SPELLINGS
from tests.sql.pairs import pairs

_VALID = [text for pair in pairs("canonical.sql") for text in pair]
_EXTRA = [
    "(", ")", ",", ";", ".", "*", "-", "+", "[", "]", "=", "'x'", "`q`", "1", "5m", "1.5e3",
    "SELECT", "FROM", "WITH", "AS", "NOT", "NULL", "IN", "OVER", "FILTER", "WINDOW", "ROWS", "EMIT",
    "x", "JOIN", "INTERVAL", "CASE", "END", "é", "'", "/*", "--", "\n", "\x00", "$", "::", "{",
    "{#", "#}", "SHOW", "EXPLAIN", "IF", "EXISTS", "CASCADE", "IGNORE", "DISTINCT",
]  # fmt: skip


def _pieces(text: str) -> list[str]:
    source = Source(text)
    return [text[token.start : token.end] for token in tokenize(source)[:-1]]


@st.composite
def mutate(draw: st.DrawFn, text: str) -> str:
    """The text with tokens dropped, doubled, exchanged or inserted."""
    pieces = _pieces(text)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(len(pieces) - 1, 0)))
        match draw(st.sampled_from(["drop", "duplicate", "swap", "insert", "other"])):
            case "drop":
                del pieces[at : at + 1]
            case "duplicate":
                pieces[at:at] = pieces[at : at + 1]
            case "swap" if at + 1 < len(pieces):
                pieces[at], pieces[at + 1] = pieces[at + 1], pieces[at]
            case "other":
                pieces[at:at] = _pieces(draw(st.sampled_from(_VALID)))[:3]
            case _:
                pieces.insert(at, draw(st.sampled_from(_EXTRA) | st.text(max_size=3)))
    return " ".join(pieces)


def _significant(text: str) -> Counter[Any]:
    """The tokens of a text, without the spellings that the canonical form chooses."""
    tokens = [token for token in tokenize(Source(text)) if token.kind is not Kind.END]
    found: Counter[Any] = Counter()
    for n, token in enumerate(tokens):
        # The canonical form quotes names of options with dots.
        parts = token.text.split(".") if token.kind is Kind.QUOTED else []
        if len(parts) > 1:
            found.update(part.upper() for part in parts)
        else:
            found[_normal(token, tokens[max(n - 3, 0) : n], tokens[n + 1 : n + 3])] += 1
    return found


def _normal(token: Token, before: list[Token], after: list[Token]) -> Any:
    same = {"==": "=", "!=": "<>", "!": "NOT", "HOPPING": "SLIDING"} | SPELLINGS
    if before and before[-1].upper == "INTERVAL" and after and token.kind is not Kind.WORD:
        return interval(token.text, after[0].text)
    if token.kind in (Kind.STRING, Kind.NUMBER) and short_duration(token.text) is not None:
        return short_duration(token.text)
    if token.kind is Kind.NUMBER:
        return token.text.upper().rstrip("LSYDFB")
    return same.get(token.text.upper(), token.text.upper())


#: Tokens that carry no meaning, or that the canonical form spells differently.
_FREE = {"(", ")", ";", "AS", "[", "]", ".", "INTERVAL", ","} | {
    unit + plural
    for unit in ("DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")
    for plural in ("", "S")
}


def _check_position(text: str, error: SqlError) -> None:
    lines = text.split("\n")
    assert 1 <= error.line <= len(lines)
    assert 1 <= error.column <= len(lines[error.line - 1]) + 1


@given(st.sampled_from(_VALID).flatmap(mutate))
def check(text: str) -> None:
    try:
        statements = parse(text)
    except SqlError as error:
        _check_position(text, error)
        return
    texts = [canonical(statement) for statement in statements]
    assert parse(";".join(texts)) == statements
    lost = _significant(text) - _significant("; ".join(texts))
    assert not [token for token in lost if token not in _FREE], (lost, text, texts)


def test_no_token_is_ignored_and_nothing_else_is_raised(full_size: bool) -> None:
    settings(
        max_examples=20_000 if full_size else 1_000,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )(check)()


@pytest.mark.parametrize("microseconds", [1_000, 1_000_000, 90_000_000, 86_400_000_000, 1])
def test_written_durations_are_read_back(microseconds: int) -> None:
    text = duration_text(microseconds)
    if text.startswith("INTERVAL"):
        number, unit = text.removeprefix("INTERVAL '").split("' ")
        assert interval(number, unit) == microseconds
    else:
        assert short_duration(text) == microseconds
