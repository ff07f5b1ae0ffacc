"""Payloads become typed columns: exact values, and an error where a value does not fit."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queenspark.sql.expressions.time_text import iso_timestamps, timestamp_of_iso
from queenspark.sql.payload import Field, PayloadDecoder
from queenspark.sql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    JSON,
    STRING,
    TIMESTAMP,
    SqlType,
    array,
    decimal,
)


def _decode(payloads: list[str | None], *fields: Field) -> pl.DataFrame:
    return PayloadDecoder(fields).columns(pl.Series(payloads, dtype=pl.String))


def _one(value: str, kind: SqlType) -> tuple[Any, str | None]:
    field = Field(("a",), kind)
    frame = _decode([f'{{"a": {value}}}'], field)
    assert frame[field.column].dtype == kind.column
    return frame[field.column][0], frame[field.error][0]


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("9223372036854775807", BIGINT, 2**63 - 1),
        ("-9223372036854775808", BIGINT, -(2**63)),
        ("1.5", DOUBLE, 1.5),
        ("3", DOUBLE, 3.0),
        ('"Infinity"', DOUBLE, float("inf")),
        ("12345678901234567890.123456789", decimal(38, 9), Decimal("12345678901234567890.123456789")),
        ("1e3", decimal(10, 2), Decimal(1000)),
        ('"a\\u00e9\\ud83d\\ude00"', STRING, "aé😀"),
        ("1.50", STRING, "1.50"),
        ("true", STRING, "true"),
        ('{"b": [1, 2]}', STRING, '{"b": [1, 2]}'),
        ('{"b": 1.10}', JSON, '{"b": 1.10}'),
        ('"x"', JSON, '"x"'),
        ("true", BOOLEAN, True),
        ('"2026-01-31T12:00:00.5Z"', TIMESTAMP, datetime(2026, 1, 31, 12, 0, 0, 500000, UTC)),
        ("1769860800000", TIMESTAMP, datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ('"2026-01-31"', DATE, date(2026, 1, 31)),
        ("[1, null, 3]", array(BIGINT), [1, None, 3]),
        ('["a", 1.50]', array(STRING), ["a", "1.50"]),
        ("null", BIGINT, None),
    ],
)
def test_values_keep_all_digits(text: str, kind: SqlType, value: Any) -> None:
    found, error = _one(text, kind)
    assert error is None
    assert (found.to_list() if isinstance(found, pl.Series) else found) == value


@pytest.mark.parametrize(
    ("text", "kind", "reason"),
    [
        ("1.5", BIGINT, "a is 1.5, not a BIGINT; it would fit DOUBLE"),
        ('"7"', BIGINT, 'a is "7", not a BIGINT; it would fit STRING'),
        (
            "9223372036854775808",
            BIGINT,
            "a is 9223372036854775808, not a BIGINT; it would fit DECIMAL(19, 0)",
        ),
        ("2147483648", INT, "a is 2147483648, not a INT; it would fit BIGINT"),
        ("true", DOUBLE, "a is true, not a DOUBLE; it would fit BOOLEAN"),
        ("1", BOOLEAN, "a is 1, not a BOOLEAN; it would fit BIGINT"),
        ("[1]", DOUBLE, "a is [1], not a DOUBLE; it would fit JSON"),
        ("1.234", decimal(10, 2), "a is 1.234, not a DECIMAL(10, 2); it would fit DOUBLE"),
        ("123", decimal(4, 2), "a is 123, not a DECIMAL(4, 2); it would fit BIGINT"),
        ('["a"]', array(BIGINT), 'a is ["a"], not a ARRAY<BIGINT>; it would fit JSON'),
        ('"yesterday"', TIMESTAMP, "a is 'yesterday', not a TIMESTAMP; write it in ISO 8601"),
    ],
)
def test_a_value_of_the_wrong_type_names_the_type_that_fits(text: str, kind: SqlType, reason: str) -> None:
    assert _one(text, kind) == (None, reason)


@pytest.mark.parametrize(
    ("text", "kind", "fit"),
    [
        ("1e39", FLOAT, "DOUBLE"),
        ("-3.4028235677973366e38", FLOAT, "DOUBLE"),
        ("[1.5, 1e39]", array(FLOAT), "JSON"),
        ("1e400", DOUBLE, "STRING"),
        ("1" * 39, BIGINT, "DOUBLE"),
        ("1" * 400, BIGINT, "STRING"),
        ("1" * 5000, BIGINT, "STRING"),
        ("-" + "1" * 5000, DOUBLE, "STRING"),
    ],
)
def test_a_number_that_is_too_large_does_not_fit(text: str, kind: SqlType, fit: str) -> None:
    for others in ("", ', "b": 1'):
        frame = _decode(['{"a": null}', f'{{"a": {text}{others}}}'], field := Field(("a",), kind))
        assert frame[field.column].to_list() == [None, None]
        error = frame[field.error][1]
        assert error.startswith(f"a is {text[:10]}" if kind != FLOAT else "a is ")
        assert error.endswith(f", not a {kind}; it would fit {fit}")


def test_the_largest_floats_and_infinity_fit() -> None:
    field = Field(("a",), FLOAT)
    frame = _decode(['{"a": 3.4028235677973362e38}', '{"a": "-Infinity"}', '{"a": "NaN"}'], field)
    assert frame[field.error].null_count() == 3
    assert repr(frame[field.column].to_list()) == "[3.4028234663852886e+38, -inf, nan]"


def test_a_payload_that_is_nested_too_deeply_harms_no_other() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    fields = Field(("a",), BIGINT), Field(("b", 0), STRING), Field(("c",), JSON)
    frame = _decode(
        ['{"a": 1}', deep, f'{{"x": {deep}, "a": 2, "b": {deep}, "c": {deep}}}', '{"a": 3}'], *fields
    )
    assert [frame[fields[0].column][number] for number in (0, 3)] == [1, 3]


def test_one_bad_record_harms_no_other_and_no_other_path() -> None:
    amount, city = Field(("amount",), BIGINT), Field(("address", "city"), STRING)
    payloads = [
        '{"amount": 1, "address": {"city": "Rome"}}',
        '{"amount": "x", "address": {"city": "Oslo"}}',
        "{}",
    ]
    frame = _decode([*payloads, "[1]", None, '{"address": "none"}', '{"address": null}'], amount, city)
    assert frame[amount.column].to_list() == [1, None, None, None, None, None, None]
    assert frame[city.column].to_list() == ["Rome", "Oslo", None, None, None, None, None]
    assert [error is not None for error in frame[amount.error]] == [False, True] + [False] * 5
    assert frame[city.error].null_count() == 7


def test_a_payload_that_is_no_object_has_no_columns() -> None:
    fields = [Field(("n",), BIGINT), Field(("a",), JSON), Field(("a", "b"), STRING), Field((0,), BIGINT)]
    payloads = ['{"n": 1}', "7", " [5]", '"text"', '{"n": "x", "a": 2}', "null", None, "x" * 100]
    frame = PayloadDecoder(fields, must_be_objects=True).columns(pl.Series(payloads))
    for field in fields:
        alone = PayloadDecoder([field], must_be_objects=True).columns(pl.Series(payloads))
        assert alone.equals(frame.select(alone.columns), null_equal=True)
    reasons = [None, "7", "[5]", '"text"', None, None, None, "x" * 80]
    for field in fields[:3]:
        expected = [
            None if each is None else f"{field} cannot be read: the payload is {each}, not a JSON object"
            for each in reasons
        ]
        errors = frame[field.error].to_list()
        assert [error for number, error in enumerate(errors) if number != 4] == [*expected[:4], *expected[5:]]
    assert "it would fit STRING" in str(frame[fields[0].error][4])
    assert frame[fields[3].column].to_list() == [None, None, 5, None, None, None, None, None]
    assert frame[fields[3].error].null_count() == len(payloads)


def test_paths_may_overlap_and_have_indexes_and_unusual_names() -> None:
    fields = [
        Field(("a",), JSON),
        Field(("a", "b"), BIGINT),
        Field(("a", "b"), STRING),
        Field(("l", 1, "x"), BIGINT),
        Field(("l", 5), BIGINT),
        Field(("my.name",), STRING),
        Field(("names",), STRING),
        Field(("f0",), BIGINT),
    ]
    payload = '{"a": {"b": 5}, "l": [0, {"x": 7}], "my.name": "n", "names": "k", "f0": 3}'
    frame = _decode([payload], *fields)
    assert [frame[field.column][0] for field in fields] == ['{"b": 5}', 5, "5", 7, None, "n", "k", 3]


_NUMBERS = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
_VALUES = st.recursive(
    st.none() | st.booleans() | _NUMBERS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)


def _walk(value: Any, steps: tuple[str | int, ...]) -> Any:
    for step in steps:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
        else:
            value = value[step] if isinstance(value, list) and step < len(value) else None
    return value


@settings(max_examples=300, deadline=None)
@given(
    st.lists(_VALUES, max_size=4),
    st.lists(
        st.sampled_from([("a",), ("b",), ("a", "b"), ("a", 0), ("c", "a", "b")]), min_size=1, unique=True
    ),
    st.sampled_from(
        [BIGINT, INT, DOUBLE, BOOLEAN, STRING, JSON, TIMESTAMP, DATE, decimal(20, 3), array(BIGINT)]
    ),
)
def test_any_json_gives_a_value_or_an_error(values: list[Any], paths: list[Any], kind: SqlType) -> None:
    fields = [Field(path, kind) for path in paths]
    together = _decode([json.dumps(value) for value in values], *fields)
    for number, value in enumerate(values):
        for field in fields:
            alone = _decode([json.dumps(value)], field)
            assert alone[field.column].equals(together[field.column][number : number + 1], null_equal=True)
            assert alone[field.error][0] == together[field.error][number]
            missing = alone[field.column][0] is None and alone[field.error][0] is None
            assert missing == (_walk(value, field.steps) is None)


_TIMES = [
    "2026-01-31T12:00:00Z", "2026-01-31T12:00:00.5Z", "2026-01-31T12:00:00,5Z", "2026-01-31T24:00:00Z",
    "2026-02-30T12:00:00Z", "2026-01-31T12:00:00.1234567Z", "2026-1-31T12:00:00Z", "2026-01-31T12:0:00Z",
    "2026-01-31T12:00:60Z", "2026-W05-6T12:00:00Z", "20260131T120000Z12Z", "2026-01-31T12:00:00.Z",
    "2026-01-31T12:00:00.12+01Z", "2026-01-31 12:00:00+01:00", "2026-01-31", "soon", "", None,
    "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00Z", "0000-01-01T00:00:00Z", "2026-01-31T12:00:00.١Z",
]  # fmt: skip


@pytest.mark.parametrize("times", [1, 1000])
def test_times_are_read_alike_however_many_there_are(times: int) -> None:
    texts = _TIMES * times
    column = pl.Series("text", texts, dtype=pl.String).to_frame()
    slow = column.select(timestamp_of_iso(pl.col("text"))).to_series()
    assert iso_timestamps(texts).to_list() == slow.to_list()
