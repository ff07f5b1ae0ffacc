"""Records that are merged where they are read give the same windows as the single ones."""

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars import selectors as cs

from queenspark.windows import Aggregate, Engine, Merging, RecordsNeeded, Result, WindowSpec, merging

INPUTS = {"n": pl.Int64, "x": pl.Float64, "label": pl.String}
RECORD = {
    "stream": pl.Int64, "version": pl.Int32, "key": pl.String, "source": pl.Int32, "txid": pl.Int64,
    "id": pl.Int64, "created_us": pl.Int64, "event_us": pl.Int64, **INPUTS,
}  # fmt: skip
CALLS = {
    "some": ("count", ("n",)), "sum": ("sum", ("n",)), "total": ("sum", ("x",)), "mean": ("avg", ("n",)),
    "least": ("min", ("x",)), "most": ("max", ("label",)), "begin": ("first", ("n",)),
    "end": ("last", ("label",)), "best": ("max_by", ("label", "n")), "spread": ("var_samp", ("n",)),
    "all": ("collect_list", ("n",)), "middle": ("median", ("x",)),
}  # fmt: skip
TYPES = {"n": "Int64", "x": "Float64", "label": "String"}
AGGREGATES = tuple(
    Aggregate(function=function, inputs=inputs, types=tuple(TYPES[each] for each in inputs), name=name)
    for name, (function, inputs) in CALLS.items()
)
DISTINCT = Aggregate(function="count", inputs=("label",), types=("String",), name="kinds", distinct=True)
SPECS: dict[str, dict[str, Any]] = {
    "tumbling": {"kind": "tumbling", "duration_us": 10, "clock": "event"},
    "sliding": {"kind": "sliding", "duration_us": 15, "slide_us": 10, "clock": "event"},
    "group": {"kind": "group"},
}


@pytest.fixture(autouse=True)
def however_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Merge also where that is not worth it."""
    monkeypatch.setattr(merging, "FEWEST", 0)
    monkeypatch.setattr(merging, "LEAST_SHARE", 0)


@st.composite
def batches(draw: st.DrawFn) -> list[tuple[int, list[pl.DataFrame]]]:
    """Batches of chunks: mostly in order of time, and with some that go back."""
    found, number, clock = [], 0, 0
    for _ in range(draw(st.integers(1, 4))):
        clock += draw(st.sampled_from((0, 5, 40)))
        chunks = []
        for _ in range(draw(st.integers(1, 3))):
            rows = []
            for _ in range(draw(st.integers(1, 12))):
                number += 1
                event = number + draw(st.sampled_from((0, 0, 0, 0, 3, -7, -30)))
                value = draw(st.sampled_from((None, 1, 2, 3)))
                halves = None if value is None else value / 2
                rows.append(
                    (1, 1, draw(st.sampled_from("ab")), 0, number // 20, number, clock, event, value, halves,
                     draw(st.sampled_from((None, "u", "v"))))
                )  # fmt: skip
            chunks.append(pl.DataFrame(rows, schema=RECORD, orient="row"))
        found.append((clock, chunks))
    return found


def run(spec: WindowSpec, log: list[tuple[int, list[pl.DataFrame]]], *, merge: bool) -> tuple[Any, ...]:
    """All that the engine gives, and how many batches needed single records."""
    engine, merges = Engine({(1, 1): spec}), Merging.of(spec)
    assert merges is not None
    state, rows, needed = None, [], 0
    counts: list[tuple[int, int]] = []
    for safe, chunks in [*log, (10**6, [])]:
        result: Result | None = None
        if merge:
            by_columns: dict[tuple[str, ...], list[pl.DataFrame]] = {}
            for chunk in chunks:
                for frame in merges.merged(chunk):
                    by_columns.setdefault(tuple(frame.columns), []).append(frame)
            try:
                result = engine.advance(state, [pl.concat(each) for each in by_columns.values()], safe)
            except RecordsNeeded:
                needed += 1
        result = result or engine.advance(state, chunks, safe)
        assert not result.failed
        state = result.state
        rows += [*result.rows, *(engine.finish(state) if safe == 10**6 else [])]
        counts.append((result.late_log.height, result.dropped.height))
    # The order in which floating-point numbers are added shows in the last digits.
    rounded = [frame.with_columns(cs.float().round(9)) for frame in rows]
    found = [row for frame in rounded for row in frame.sort("key", "window_id", "revision").rows()]
    return found, counts, needed


@settings(max_examples=30, deadline=None)
@given(
    log=batches(),
    kind=st.sampled_from(sorted(SPECS)),
    late=st.sampled_from(("process", "drop", "warn")),
    aggregates=st.lists(
        st.sampled_from((*AGGREGATES, DISTINCT)), max_size=3, unique_by=lambda each: each.name
    ),
    grace=st.sampled_from((0, 4)),
)
def test_merged_records_give_the_same_windows(
    log: list[tuple[int, list[pl.DataFrame]]],
    kind: str,
    late: str,
    aggregates: list[Aggregate],
    grace: int,
) -> None:
    more: dict[str, Any] = {"late": late, "grace_us": grace}
    spec = WindowSpec(**SPECS[kind], **more, aggregates=tuple(aggregates))
    single, late_single, _ = run(spec, log, merge=False)
    merged, late_merged, _ = run(spec, log, merge=True)
    assert merged == single
    assert late_merged == late_single


def chunk(*rows: tuple[str, int]) -> pl.DataFrame:
    """Records of keys and times."""
    return pl.DataFrame(
        [(1, 1, key, 0, 1, number, 0, event, 1, 0.5, "u") for number, (key, event) in enumerate(rows)],
        schema=RECORD,
        orient="row",
    )


def test_records_of_a_pane_become_one_row() -> None:
    found = Merging(WindowSpec(**SPECS["tumbling"], aggregates=AGGREGATES)).merged(
        chunk(("a", 1), ("b", 2), ("a", 3), ("a", 12))
    )
    assert [frame.height for frame in found] == [3]


def test_records_of_different_keys_and_panes_stay_apart_however_far_their_times_are() -> None:
    times = (-(10**16), -1, 0, 10**16)  # centuries before and after 1970, in panes of 10 microseconds
    rows = [(key, time) for time in times for key in ("a", "b", "a")]
    (found,) = Merging(WindowSpec(**SPECS["tumbling"])).merged(chunk(*rows))
    counts = found.sort("event_us", "key").select("key", "event_us", "count").rows()
    assert counts == [(key, time, count) for time in times for key, count in (("a", 2), ("b", 1))]


def test_keys_that_go_back_to_an_earlier_pane_stay_single() -> None:
    parts, single = Merging(WindowSpec(**SPECS["tumbling"])).merged(
        chunk(("a", 1), ("b", 2), ("a", 12), ("b", 4), ("a", 3))
    )
    assert (parts["key"].to_list(), parts["count"].to_list()) == (["b"], [2])
    assert single["key"].to_list() == ["a", "a", "a"]


@pytest.mark.parametrize(
    "spec",
    [
        {**SPECS["tumbling"], "emission": "changes"},
        {**SPECS["tumbling"], "clock": "ingest"},
        {**SPECS["group"], "ttl_us": 10},
        {"kind": "session", "gap_us": 5, "clock": "event"},
        {"kind": "rows", "size": 3, "emission": "changes"},
        {"kind": "count", "size": 3},
    ],
)
def test_other_windows_need_the_single_records(spec: dict[str, Any]) -> None:
    assert Merging.of(WindowSpec(**spec)) is None
