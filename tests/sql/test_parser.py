"""Statements are parsed into one canonical form; errors say where."""

import pytest

from queenspark.sql import SqlError, canonical, parse, parse_expression, parse_one
from queenspark.sql.expression_text import expression_text
from tests.sql.pairs import pairs


@pytest.mark.parametrize(("text", "expected"), pairs("canonical.sql"))
def test_a_statement_has_one_canonical_form(text: str, expected: str) -> None:
    statement = parse_one(text)
    assert canonical(statement) == expected
    assert parse_one(expected) == statement


@pytest.mark.parametrize(("marked", "expected"), pairs("errors.sql"))
def test_an_error_has_a_position_and_a_message(marked: str, expected: str) -> None:
    text = marked.replace("^", "", 1)
    before = marked[: marked.index("^")]
    with pytest.raises(SqlError) as caught:
        parse(text)
    error = caught.value
    assert error.message == expected
    assert (error.line, error.column) == (before.count("\n") + 1, len(before) - before.rfind("\n"))
    assert str(error) == f"line {error.line}, column {error.column}: {expected}"


def test_statements_are_separated_by_semicolons_and_comments_are_left_out() -> None:
    text = "show streams; -- one; two\n;; /* three; */ explain select 'a;b' from t;\nshow jobs"
    assert [canonical(each) for each in parse(text)] == [
        "SHOW STREAMS",
        "EXPLAIN SELECT 'a;b' FROM t",
        "SHOW JOBS",
    ]
    assert parse(" -- nothing\n") == []


def test_comments_can_be_nested() -> None:
    assert canonical(parse_one("select a /* one /* two */ three */ from t -- {# four")) == "SELECT a FROM t"


def test_positions_count_from_the_whole_text() -> None:
    with pytest.raises(SqlError) as caught:
        parse("show streams;\nexplain\n  select a frm b")
    assert (caught.value.line, caught.value.column) == (3, 12)


def test_an_expression_alone() -> None:
    assert expression_text(parse_expression("data.amount>0 and x")) == "data.amount > 0 AND x"
    for text, column in (("a b", 3), ("a; b", 2), ("a, b", 4), ("", 1), ("select 1", 1)):
        with pytest.raises(SqlError) as caught:
            parse_expression(text)
        assert caught.value.column == column, text


@pytest.mark.parametrize(
    "text",
    [
        "select " + "(" * 5000 + "a" + ")" * 5000 + " from t",
        "select " + " + ".join(["a"] * 5000) + " from t",
        "select " + "not " * 5000 + "a from t",
        "select " + "- " * 5000 + "a from t",
        "select " + "f(" * 500 + "a" + ")" * 500 + " from t",
        "select " + "case when a then " * 500 + "a" + " end" * 500 + " from t",
        "select a" + "[b]" * 5000 + " from t",
        "x" * 1_000_001,
    ],
)
def test_texts_that_are_too_deep_or_too_long_are_refused(text: str) -> None:
    with pytest.raises(SqlError, match=r"too deep|at most"):
        parse(text)


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        (r"'\u00e9\ud83d\ude00'", "é😀"),
        (r"'\101\%\_\q\Z'", "A\\%\\_q\x1a"),
        (r"'\0'", "\0"),
        (r"'\U0001F600'", "😀"),
        ("'a''''b'", "a''b"),
        ("''", ""),
        ("''''", "'"),
    ],
)
def test_escapes_are_those_of_spark(literal: str, value: str) -> None:
    node = parse_expression(literal)
    assert getattr(node, "text", None) == value
    assert parse_expression(expression_text(node)) == node
