"""Open windows according to the log, within the limits of a version."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import pytest

from queenspark.broker.explanation.next_window import open_windows
from queenspark.store.definitions import Body
from queenspark.windows import WindowSpec


def body(**more: Any) -> Body:
    given: dict[str, Any] = {"name": "s", "namespace": "n", "partitioned": True, "spec": {}}
    return Body(**given, event_time=None, sources=(), **more)


def records(times: Mapping[str, Sequence[int]]) -> pl.DataFrame:
    rows = [(key, time, time) for key, own in times.items() for time in own]
    return pl.DataFrame(rows, schema=["key", "time_us", "created_us"], orient="row")


@pytest.mark.parametrize("slide", [1, 3, 7, 10, 20])
@pytest.mark.parametrize("limits", [{}, {"from_us": 25}, {"until_us": 60}])
def test_they_are_the_windows_that_contain_a_record(slide: int, limits: dict[str, int]) -> None:
    spec = WindowSpec(kind="sliding", duration_us=20, slide_us=slide)
    chosen = random.Random(slide)
    for _ in range(20):
        times = sorted(chosen.sample(range(200), chosen.randint(1, 8)))
        tick = chosen.randint(0, 150)
        expected = Counter(
            {
                start: sum(start <= time < start + 20 for time in times)
                for start in range(-20 // slide * slide, 200, slide)
                if start + 20 > tick
                and limits.get("from_us", start) <= start < limits.get("until_us", start + 1)
            }
        )
        shuffled = chosen.sample(times, len(times))
        found = list(open_windows(body(**limits), spec, records({"k": shuffled}), tick, most=1000))
        assert {window.start_us: window.records for window in found} == dict(+expected)
        assert [window.start_us for window in found] == sorted(+expected)
        first = list(open_windows(body(**limits), spec, records({"k": shuffled}), tick, most=2))
        assert first == found[:2], "those that end first"


def test_only_the_windows_of_some_keys_are_found_if_asked() -> None:
    frame = records({"a": [1, 15], "b": [2], "c": [3]})
    spec = WindowSpec(kind="tumbling", duration_us=10)
    found = [(window.key, window.start_us) for window in open_windows(body(), spec, frame, 0, most=5)]
    assert found == [("a", 0), ("a", 10), ("b", 0), ("c", 0)]
    some = open_windows(body(), spec, frame, 0, most=1, keys={"c", "a"})
    assert [(window.key, window.start_us) for window in some] == [("a", 0), ("c", 0)]
