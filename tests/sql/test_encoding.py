"""Rows, keys and inserted values as text."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queenspark.sql import SqlError, parse_one, plan_insert
from queenspark.sql.encoding import row_text
from queenspark.sql.keys import key_text, key_values, partition_name
from queenspark.sql.payload import Field, PayloadDecoder
from queenspark.sql.statements import Insert
from queenspark.sql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    JSON,
    STRING,
    TIMESTAMP,
    SqlType,
    array,
    decimal,
)
from queenspark.store.names import name_fault
from tests.sql.test_planning import Relations
from tests.sql.values import edges, more

_KINDS = [BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, decimal(38, 10)]


def _row(value: Any, kind: SqlType) -> str:
    frame = pl.DataFrame({"x": pl.Series([value], dtype=kind.column)})
    return str(frame.select(row_text({"a b": (pl.col("x"), kind)})).item())


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (2**63 - 1, BIGINT, "9223372036854775807"),
        (Decimal("12345678901234567890.10"), decimal(38, 2), "12345678901234567890.10"),
        (float("nan"), DOUBLE, '"NaN"'),
        (float("-inf"), DOUBLE, '"-Infinity"'),
        (0.1, DOUBLE, "0.1"),
        ('a"\\\n', STRING, r'"a\"\\\n"'),
        (datetime(2026, 1, 31, 12, tzinfo=UTC), TIMESTAMP, '"2026-01-31T12:00:00.000000Z"'),
        (date(2026, 1, 31), DATE, '"2026-01-31"'),
        (["a", None], array(STRING), '["a",null]'),
        ([1.5, float("nan")], array(DOUBLE), '[1.5,"NaN"]'),
        ([], array(BIGINT), "[]"),
        ('{"x": 1.10}', JSON, '{"x": 1.10}'),
        (None, BIGINT, "null"),
        (True, BOOLEAN, "true"),
    ],
)
def test_a_row_keeps_every_digit(value: Any, kind: SqlType, text: str) -> None:
    assert _row(value, kind) == f'{{"a b":{text}}}'


@pytest.mark.parametrize("kind", _KINDS, ids=str)
def test_a_row_reads_as_it_was_written(kind: SqlType) -> None:
    @settings(max_examples=50, deadline=None)
    @given(st.lists(more(kind), max_size=20))
    def check(made: list[Any]) -> None:
        column = pl.Series("x", edges(kind) + made, dtype=kind.column)
        texts = column.to_frame().select(row_text({"v": (pl.col("x"), kind)})).to_series()
        field = Field(("v",), kind)
        read = PayloadDecoder([field]).columns(texts)
        assert read[field.error].null_count() == len(column)
        assert [repr(value) for value in read[field.column]] == [repr(value) for value in column]
        for text in texts:
            json.loads(text)

    check()


def _name(*key: tuple[Any, SqlType]) -> str:
    frame = pl.DataFrame(
        [pl.Series(f"k{n}", [v], dtype=kind.column) for n, (v, kind) in enumerate(key)] or {"x": [1]}
    )
    columns = [(pl.col(f"k{n}"), kind) for n, (_, kind) in enumerate(key)]
    return str(frame.with_columns(name=partition_name(columns))["name"].item())


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ([("DE", STRING)], "DE"),
        ([("", STRING)], '[""]'),
        ([("[x", STRING)], '["[x"]'),
        ([("a\nb", STRING)], r'["a\nb"]'),
        ([("a\x7fb", STRING)], r'["a\u007fb"]'),
        ([("a\x85", STRING), ("\x9f", STRING)], r'["a\u0085","\u009f"]'),
        ([('{"a":\n["\x7f",\t1]}', JSON)], r'[{"a": ["\u007f", 1]}]'),
        ([(None, STRING)], "[null]"),
        ([(5, BIGINT)], "[5]"),
        ([("DE", STRING), (5, BIGINT)], '["DE",5]'),
        ([(-0.0, DOUBLE)], "[0.0]"),
        ([], "[]"),
    ],
)
def test_a_key_names_its_partition(key: list[tuple[Any, SqlType]], name: str) -> None:
    assert _name(*key) == name


def test_the_name_of_any_text_is_a_valid_partition() -> None:
    @settings(max_examples=50, deadline=None)
    @given(st.lists(st.text(max_size=30)))
    def check(texts: list[str]) -> None:
        column = pl.Series("x", [*map(chr, range(256)), *texts])
        names = column.to_frame().select(key_text([(pl.col("x"), STRING)])).to_series()
        assert {name_fault(name) for name in names} == {None}
        assert key_values(names, [STRING])[0].to_list() == column.to_list()

    check()


@pytest.mark.parametrize("kind", [DOUBLE, FLOAT], ids=str)
def test_both_zeros_are_one_key_in_any_batch(kind: SqlType) -> None:
    zeros = pl.DataFrame({"x": pl.Series([-0.0, 0.0, -0.0, 1.5], dtype=kind.column)})
    for frame in (zeros, zeros.head(1), zeros.tail(2)):
        names = frame.select(partition_name([(pl.col("x"), kind)])).to_series()
        assert set(names[:1]) == {"[0.0]"}
        assert set(names) <= {"[0.0]", "[1.5]"}


def test_long_keys_end_in_their_hash() -> None:
    one, other = _name(("x" * 300, STRING)), _name(("x" * 299 + "y", STRING))
    assert len(one) == 255 == len(other)
    assert one != other
    assert one.startswith("x" * 190 + "#")
    assert _name(("x" * 255, STRING)) == "x" * 255


def _insert(text: str) -> list[str]:
    statement = parse_one(text)
    assert isinstance(statement, Insert)
    return plan_insert(statement, Relations())[1]


def test_inserted_rows_become_payloads() -> None:
    values = "1 + 1, 'Rome', 2.5, timestamp '2026-01-31 12:00:00', split('a,b', ','), '{\"x\": 1}', 1e0 / 4"
    assert _insert(f"insert into orders values ({values}), (null, null, 1, null, null, null, 3)") == [
        '{"id":2,"city":"Rome","amount":2.50,"at":"2026-01-31T12:00:00.000000Z","tags":["a","b"],'
        '"raw":{"x": 1},"price":0.25}',
        '{"id":null,"city":null,"amount":1.00,"at":null,"tags":null,"raw":null,"price":3.0}',
    ]


_REST = "null, null, null, 1)"


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("orders values (1)", 28, "orders has 7 columns, and the row has 1"),
        ("ordrs values (1)", 1, "there is no stream ordrs; did you mean orders?"),
        ("totals values (1)", 1, "totals is not declared over a queue; INSERT needs a declared stream"),
        (f"orders values ('x', '', 1, {_REST}", 28, "id is a BIGINT, found STRING; use CAST"),
        (f"orders values (1 / 0, '', 1, {_REST}", 28, "the value of id fails: division by zero"),
        (
            f"orders values (x, '', 1, {_REST}",
            28,
            "x is a name; VALUES takes constants (strings are in single quotes)",
        ),
        (
            f"orders values (1, '', 1e9, {_REST}",
            35,
            "the value of amount fails: '1000000000.0' is not a DECIMAL(10, 2)",
        ),
        (
            "orders values (1, '', 1, null, null, '{', 1)",
            50,
            "the value of raw is not valid JSON: Input data was truncated",
        ),
        (
            f"orders values (1, '', 1, null, null, '{'[' * 100_000}', 1)",
            50,
            "the value of raw is not valid JSON: it is nested too deeply",
        ),
    ],
)
def test_values_that_do_not_fit_are_refused(text: str, column: int, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        _insert(f"insert into {text}")
    assert (caught.value.message, caught.value.column) == (message, column)
