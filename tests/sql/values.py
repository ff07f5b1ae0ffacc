"""Values that are known to be difficult, and strategies for more of them, by type."""

from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from itertools import product
from json import dumps
from typing import Any

import polars as pl
from hypothesis import strategies as st

from queenspark.sql.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    STRING,
    TIMESTAMP,
    SqlType,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAN, _INFINITY = float("nan"), float("inf")
_FLOATS = [
    None, 0.0, -0.0, 1.0, -1.5, _NAN, _INFINITY, -_INFINITY, 2.0**63, -(2.0**63), 1e300, 5e-324, 0.1, 2.5,
    1e7, -1e300, 1e23, 2147483647.5, -2147483648.9, 400.0, -0.5, 2.345, 0.001, 1e-4, 9999999.0, 9.3e18, 0.5,
    2.675, 1.005, -0.4, 123456.789, 1.401298464324817e-45, 1e-322,
]  # fmt: skip
_STRINGS = [
    None, "", "a", "abc", "ABC", "  a b ", "\t a\n", "straße", "ΑΣ", "İI", "e\u0301a\u0301", "😀b😀", "a😀é",
    "a,b,,c", ",", "a.b|c", "100%", "a_b", "a\\b", "xyzabc", "abcabc", "\n", "ab\n", "a\r\n", "é", "日本語",
    "0", "x" * 50, "a\u2028", "\u0085",
]  # fmt: skip
_CASTABLE = [
    None, "", " ", "1", "+5", "-0", " 7\t", "12.5", ".5", "1.", "1e3", "1E-3", "1.5e3", "nan", "NaN",
    "+NaN", "-NaN", "-nan", "inf", "-Infinity", "+inf", "infinity", "INF", "1d", "1.5F", "1e400", "1e-400",
    "-", ".", "1e", "--1", "1_0", "abc", "true", "FALSE", "t", "y", "No", "on", "2147483648",
    "-9223372036854775808", "9223372036854775808", "128", "-129", "32768", "1,5", "12.345", "12.335",
    "-12.345", "999999999.999", "99999999.995", "99999999.994", "\u00a07", "١", "\u20037",
    "0.30000000000000004", "123456789012345678901234567890.5", "00012", "1 2", "\x0b3\x0c", "é",
    # Next to the middle of two FLOATs, but the nearest DOUBLE is the middle; and beyond the largest FLOAT.
    "1.00000017881393432617187499", "3.4028235677973366e38", "1e39",
]  # fmt: skip
_TIMES = [
    None, "", "2026-01-31", "2026-1-1", "2026-01", "2026", "2026-01-31T", "2026-01-31 ", " 2026-01-31 ",
    "2026-01-31 12", "2026-01-31 12:5", "2026-01-31 1:2:3", "2026-01-31T12:05:06", "2026-01-31 12:05:06.5",
    "2026-01-31 12:05:06.1234567", "2026-01-31 12:05:06.1234567891", "2026-01-31 12:05:06.",
    "2026-01-31 12:05:06Z", "2026-01-31 12:05:06 Z", "2026-01-31 12:05:06+1", "2026-01-31 12:05:06+01:30",
    "2026-01-31 12:05:06-18:00", "2026-01-31 12:05:06-19:00", "2026-01-31 12:05:06 UTC",
    "2026-01-31T12:05Z", "2026-01-31T12:05:06.5+01:00", "2026-02-30", "2024-02-29", "2025-02-29",
    "2026-01-31 24:00:00", "2026-01-31 12:05:60", "2026-13-01", "0001-01-01", "9999-12-31 23:59:59.999999",
    "026-01-01", "2026-01-31 12:05:06,5", "2026-01-31  12:05:06", "2026-001-31", "2026-01-31xyz", "abc",
    "2026-01-31t12:05:06", "20260131", "2026-01-31T12:05:06+01:30:15", "2026-01-31 12:05:06 +01:00",
    "2026-01-31-", "2026-", "2026-01-31 12:60", "2026-01-31T12:05:06.123456Z",
    "1969-12-31T23:59:59.999999Z", "2026-1-31 2:3:4.5 GMT+2", "2026-01-31 12:05:06UTC+1:30",
]  # fmt: skip

_JSON = [
    None, "", " ", "null", "1", "true", '"a"', "[]", "{}", "[1]", '{"a": 1}', '{"a": null}',
    "[null, null]", '{"a": {"b": [1, 2, {"c": "x"}]}, "b": "y"}',
    '{"a": [10, [20, 21], null, "s"]}', '[{"a": 1}, {"a": 2}]', '{"a": 1, "a": 2}',
    '{"a": null, "a": 2}', '{"a": {"b": null}, "a": {"b": 1}}', '{"a": {"b": 1, "b": 2}}',
    '{"a": {"z": 1, "y": [true, false, null]}}', '{"a": 1} x', '{"a": 1}}', "[1] 2", "[1],",
    '{"a": 1', "[1, 2", '{"a": 1,}', "[1,]", "[,1]", "[1 2]", '{"a" 1}', '{a: 1}', "{'a': 'x\"y'}",
    "['it\\'s']", '{"a": "it\\\'s"}', '{"a": "line\nbreak\ttab"}',
    '{"a": ["line\nbreak\ttab\x01"]}', '{"a": "\\u00e9\\n\\/\\b"}',
    '{"a": ["\\u00e9\\n\\/\\b\\f\\u001f\x7f"]}', '{"a": "\\ud83d\\ude00"}', '{"a": "\\ud800"}',
    '{"a": ["\\ud83d\\ude00"]}', '{"a": ["\\ud800"]}', '{"\\ud800": 1, "a": 3}', '{"a": "\\x"}',
    '{"a": "\\u12"}', '{"\\u0061": "name"}', '{"a b": 1, "日本": 2, "a.b": 3, "0": 4, "": 5}',
    '{"a": [1.50, 1e3, 1E-7, 1e400, -0, -0.0, 12345678901234567890123, 0.1, 1e7, -2.5e-3, 1.0]}',
    '{"a": 1.50}', '{"a": 1e400}', '{"a": -1e400}', '{"a": -0}', '{"a": 12345678901234567890123}',
    '{"a": 1e7}', '{"a": 01}', '{"a": 1.}', '{"a": .5}', '{"a": +1}', '{"a": -}', '{"a": 1e}',
    '{"a": NaN}', '{"a": Infinity}', '{"a": -Infinity}', '{"a": tru}', '{"a": truex}',
    '{"a": TRUE}', "[}", '{"a": ]', "\ufeff[1]", "\u00a0[1]", "[1\u00a0]", "/* c */ [1]",
    "[1] // c", '{"a": undefined}', "[[1], [2, 3]]", '  {"a"\n:\t"x" , "b":[ ] }  ',
    "[" * 1000 + "]" * 1000, "[" * 1001 + "]" * 1001, '{"a": ' + "1" * 1000 + "}",
    '{"a": ' + "1" * 1001 + "}", '{"a": 0.' + "1" * 1000 + "}", '{"a": 0.' + "1" * 1001 + "}",
    '{"a": 1e' + "0" * 999 + "}", '{"a": 1e' + "0" * 1000 + "}", '{"a": 0e' + "0" * 1000 + "}",
    '{"a": -0e' + "0" * 1001 + "}", '{"a": {"é😀": ["😀"]}}', '{"a": "' + "x" * 70_000 + '"}',
    '{"' + "x" * 50_000 + '": 1}', '{"' + "x" * 50_001 + '": 1}', "'a'", '{"a": "é😀"}',
    '{"a": ["é😀"]}',
]  # fmt: skip

#: Columns of strings that look like numbers, like times, or like JSON.
CASTABLE, TIME_TEXT, JSON_TEXT = SqlType("CASTABLE"), SqlType("TIME_TEXT"), SqlType("JSON_TEXT")
_TEXTS = {CASTABLE: _CASTABLE, TIME_TEXT: _TIMES, JSON_TEXT: _JSON}


def edges(kind: SqlType) -> list[Any]:
    """Difficult values of a type."""
    if kind.is_integer:
        return [None, 0, 1, -1, 2, 3, -7, 10, kind.least, kind.least + 1, kind.most, kind.most - 1]
    if kind == BOOLEAN:
        return [None, True, False]
    if kind == DOUBLE:
        return _FLOATS
    if kind == FLOAT:
        return [None, *pl.Series(_FLOATS[1:], dtype=pl.Float64).cast(pl.Float32).to_list()]
    if kind.is_decimal:
        most = 10**kind.precision - 1
        return [
            None,
            *(_scaled(n, kind) for n in (0, 1, -1, 5, -15, 25, most, -most, most // 3, -(most // 7))),
        ]
    if kind == DATE:
        return [
            None,
            *map(
                date.fromisoformat,
                (
                    "1970-01-01",
                    "1969-12-31",
                    "2024-02-29",
                    "2026-01-31",
                    "0001-01-01",
                    "9999-12-31",
                    "2021-01-03",
                    "2020-12-31",
                ),
            ),
        ]
    if kind == TIMESTAMP:
        texts = (
            "1970-01-01T00:00:00", "1969-12-31T23:59:59.999999", "2026-01-31T12:34:56.789",
            "2024-02-29T23:00:00.5", "0001-01-01T00:00:00", "9999-12-31T23:59:59.999999",
            "1900-06-15T11:59:59.000001", "1970-01-01T00:00:00.000400", "2026-01-31T10:20:30",
        )  # fmt: skip
        return [None, *(datetime.fromisoformat(text).replace(tzinfo=UTC) for text in texts)]
    return _TEXTS.get(kind, _STRINGS)


def _scaled(count: int, kind: SqlType) -> Decimal:
    return Decimal(count).scaleb(-kind.scale, Context(prec=60))


def more(kind: SqlType) -> st.SearchStrategy[Any]:
    """Values that hypothesis makes up."""
    if kind.is_integer:
        made: st.SearchStrategy[Any] = st.integers(kind.least, kind.most) | st.integers(-100, 100)
    elif kind == BOOLEAN:
        made = st.booleans()
    elif kind == DOUBLE:
        made = st.floats() | st.floats(-1e6, 1e6).map(lambda value: round(value, 3))
    elif kind == FLOAT:
        made = st.floats(width=32)
    elif kind.is_decimal:
        most = 10**kind.precision - 1
        made = st.integers(-most, most).map(lambda count: _scaled(count, kind))
    elif kind == DATE:
        made = st.dates()
    elif kind == TIMESTAMP:
        made = st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999).map(
            lambda micros: _EPOCH + timedelta(microseconds=micros)
        )
    elif kind == CASTABLE:
        made = st.from_regex(
            r"[ ]?[+-]?[0-9]{0,12}(\.[0-9]{0,6})?([eE][+-]?[0-9]{1,2})?[df]?", fullmatch=True
        )
    elif kind == TIME_TEXT:
        made = st.from_regex(
            r"[0-9]{4}-[01]?[0-9]-[0-3]?[0-9]([T ][0-2]?[0-9]:[0-5]?[0-9](:[0-6]?[0-9](\.[0-9]{0,7})?)?"
            r"(Z|[+-][01]?[0-9]:[0-5][0-9])?)?",
            fullmatch=True,
        ).filter(lambda text: not text.startswith("0000"))
    elif kind == JSON_TEXT:
        made = _JSON_VALUES.flatmap(_damaged)
    else:
        made = st.text(_CHARACTERS, max_size=8) | st.text("ab ,%_.", max_size=8)
    return st.none() | made


#: Characters that were assigned when Unicode 13 was made, the one of Java 17.
_CHARACTERS = st.characters(max_codepoint=0x1F9FF, exclude_categories=["Cs", "Cn", "Co"]).filter(
    lambda character: not 0x2C00 <= ord(character) <= 0x2C7F and not 0xA640 <= ord(character) <= 0xABFF
)


_JSON_NAMES = st.sampled_from(["a", "b", "c", "a b", "é"])
_JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text("ab'\"\\\n\x1fé😀", max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_JSON_NAMES, inner, max_size=4),
    max_leaves=10,
).flatmap(lambda value: st.sampled_from([dumps(value), dumps(value, indent=1, ensure_ascii=False)]))


def _damaged(text: str) -> st.SearchStrategy[str]:
    """The text, mostly, or the text with one character replaced."""
    broken = st.tuples(st.integers(0, len(text)), st.sampled_from(["", ",", "}", "'", "0", "\\", " ", "."]))
    return st.just(text) | broken.map(lambda change: text[: change[0]] + change[1] + text[change[0] + 1 :])


def column_type(kind: SqlType) -> SqlType:
    """The SQL type of a column of these values."""
    return STRING if kind in _TEXTS else kind


def fixed_frame(kinds: dict[str, SqlType]) -> pl.DataFrame:
    """Every combination of difficult values."""
    fixed = product(*(_thinned(edges(kind), len(kinds)) for kind in kinds.values()))
    schema = {name: column_type(kind).column for name, kind in kinds.items()}
    return pl.DataFrame(list(fixed), schema=schema, orient="row")


def frames(kinds: dict[str, SqlType], rows: int) -> st.SearchStrategy[pl.DataFrame]:
    """Frames with every combination of difficult values, and some that hypothesis makes."""
    fixed = fixed_frame(kinds)
    made = st.lists(st.tuples(*(more(kind) for kind in kinds.values())), max_size=rows)
    return made.map(lambda extra: fixed.vstack(pl.DataFrame(extra, schema=fixed.schema, orient="row")))


def _thinned(values: list[Any], columns: int) -> list[Any]:
    """Fewer values where they are combined with those of other columns; the most difficult come first."""
    return values[: {1: 100, 2: 22, 3: 9}[columns]]
