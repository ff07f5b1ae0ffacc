"""Event times from payloads: valid times, invalid ones, and exactness."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queenspark.windows.event_time import event_times

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOON = 1_769_860_800_000_000  # 2026-01-31T12:00:00Z


def micros(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def times(*values: Any, path: str = "ts") -> list[int | None]:
    payloads = [json.dumps({"ts": value}) for value in values]
    return event_times(pl.Series(payloads, dtype=pl.String), path).to_list()


def time_of(value: Any) -> int | None:
    return times(value)[0]


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-31T12:00:00Z",
        "2026-01-31t12:00:00z",
        "2026-01-31 12:00:00",
        "2026-01-31T12:00",
        "2026-01-31T14:00:00+02:00",
        "2026-01-31T14:00:00+0200",
        "2026-01-31T14:00:00+02",
        "2026-01-31T06:30:00-05:30",
        "2026-01-31T12:00:00.000000999999Z"[:26] + "Z",
        "2026-01-31T12:00:00,000Z",
    ],
)
def test_spellings_of_one_time(text: str) -> None:
    assert time_of(text) == NOON


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-01-31", NOON - 43_200_000_000),
        ("2026-01-31T12:00:00.5Z", NOON + 500_000),
        ("2026-01-31T12:00:00.123456Z", NOON + 123_456),
        ("2026-01-31T12:00:00.1234569Z", NOON + 123_456),
        ("0001-01-01T00:00:00Z", -62_135_596_800_000_000),
        ("9999-12-31T23:59:59.999999Z", 253_402_300_799_999_999),
        ("2000-02-29T00:00:00Z", 951_782_400_000_000),
        (0, 0),
        (-1, -1000),
        (1_769_860_800_000, NOON),
        (1_769_860_800_000.25, NOON + 250),
        (1.5e12, 1_500_000_000_000_000),
        (253_402_300_799_999, 253_402_300_799_999_000),
    ],
)
def test_times(value: Any, expected: int) -> None:
    assert time_of(value) == expected


@pytest.mark.parametrize(
    "value",
    [
        None, True, False, "", " ", "now", "1769860800000", [], [1], {}, {"a": 1},
        "2026-02-29T00:00:00Z", "1900-02-29", "2026-13-01", "2026-00-10", "2026-04-31", "2026-01-00",
        "2026-01-31T24:00:00Z", "2026-01-31T12:60:00Z", "2026-01-31T12:00:60Z", "2026-01-31T12:00:00+24:00",
        "2026-01-31T12:00:00Z ", "2026-01-31T12:00:00ZZ", "2026-01-31T", "26-01-31", "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00", "２０２６-01-31",
        253_402_300_800_000, -62_135_596_800_001, 10**30, -(10**30), 1e300,
    ],
)  # fmt: skip
def test_values_that_are_not_times(value: Any) -> None:
    assert time_of(value) is None


def test_values_of_all_types_in_one_series() -> None:
    assert times("2026-01-31T12:00:00Z", 5, None, "x", 1.5) == [NOON, 5000, None, None, 1500]


@pytest.mark.parametrize(
    ("path", "payload"),
    [
        ("ts", {"ts": 1}),
        ("data.ts", {"ts": 1}),
        ("data", 1),
        ("data.data", {"data": 1}),
        ("a.b.c", {"a": {"b": {"c": 1, "d": [1] * 9}, "x": {}}}),
        ("rows.1.at", {"rows": [0, {"at": 1}]}),
        ("0", [1]),
        ("data.0.0", [[1], 2]),
        ("a.0", {"a": {"0": 1}}),
        ("from", {"from": 1}),
        ("with space", {"with space": 1}),
        ("ü", {"ü": 1}),
    ],
)
def test_paths(path: str, payload: Any) -> None:
    assert event_times(pl.Series([json.dumps(payload)]), path).to_list() == [1000]


@pytest.mark.parametrize("payload", ['{"ts": 1}', "1", "null", '"x"', "[]", "[{}]", "{}", '{"a": [1]}'])
@pytest.mark.parametrize("path", ["a.b.c", "a.1", "b", "a.0.x"])
def test_a_path_that_leads_nowhere(path: str, payload: str) -> None:
    assert event_times(pl.Series([payload]), path).to_list() == [None]


def test_no_payloads_no_times() -> None:
    found = event_times(pl.Series([], dtype=pl.String), "ts")
    assert found.dtype == pl.Int64
    assert found.len() == 0
    assert event_times(pl.Series([None], dtype=pl.String), "ts").to_list() == [None]


OFFSETS = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.lists(st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=OFFSETS), min_size=1))  # noqa: DTZ001
def test_every_datetime_comes_out_exactly(moments: list[datetime]) -> None:
    assert times(*(moment.isoformat() for moment in moments)) == [micros(moment) for moment in moments]


@given(
    st.lists(st.integers(-(10**20), 10**20) | st.text() | st.none() | st.booleans() | st.floats(-1e18, 1e18))
)
def test_each_value_is_judged_independently(values: list[Any]) -> None:
    assert times(*values) == [time_of(value) for value in values]
