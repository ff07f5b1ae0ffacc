"""Durations as people give them."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queenspark import InvalidValue
from queenspark.client.duration import milliseconds, seconds, whole_seconds


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (0, 0.0),
        (300, 300.0),
        (1.5, 1.5),
        (timedelta(minutes=5), 300.0),
        ("5m", 300.0),
        ("1h30m", 5400.0),
        ("1h 30m", 5400.0),
        ("250ms", 0.25),
        ("1.5s", 1.5),
        ("2d", 172800.0),
        ("90", 90.0),
    ],
)
def test_seconds_timedeltas_and_texts_are_understood(given: Any, wanted: float) -> None:
    assert seconds("x", given) == wanted


@pytest.mark.parametrize(
    "given",
    ["", "5 minutes", "m", "5x", "-1", "-1s", -1, -0.5, timedelta(seconds=-1), True, None, [], "nan", "inf",
     float("nan"), float("inf"), 10**400, "1e400"],
)  # fmt: skip
def test_an_invalid_duration_is_refused_with_the_name_of_the_argument(given: Any) -> None:
    with pytest.raises(InvalidValue, match="grace_period is "):
        seconds("grace_period", given)


@given(st.integers(0, 10**10))
def test_whole_milliseconds_are_exact_in_every_form(ms: int) -> None:
    forms: list[Any] = [ms / 1000, timedelta(milliseconds=ms), f"{ms}ms", f"{ms // 1000}s{ms % 1000}ms"]
    assert [milliseconds("x", form) for form in forms] == [ms] * 4


def test_a_duration_finer_than_its_unit_is_refused_and_not_rounded() -> None:
    with pytest.raises(InvalidValue, match=r"gap is 0\.0005: it must be whole milliseconds"):
        milliseconds("gap", 0.0005)
    with pytest.raises(InvalidValue, match="ttl is '1500ms': it must be whole seconds"):
        whole_seconds("ttl", "1500ms")
    assert whole_seconds("ttl", "2000ms") == 2
