"""Idle specs are skipped in a step, without visible effect."""

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

import polars as pl
import pytest
from hypothesis import strategies as st

from queenspark.windows import Engine, Open, Result, State, WindowSpec, empty
from tests.windows.engine_adapter import batches, engine, frame
from tests.windows.oracle import Tick
from tests.windows.properties import run_property
from tests.windows.streams import Input, inputs

CUTS = st.frozensets(st.integers(0, 60), max_size=30)


@pytest.fixture(autouse=True)
def few_empty_windows_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(empty, "MOST", 7)


def text(row: Sequence[Any]) -> str:
    """A row of a table. Panes are merged in any order: doubles can differ in their last digits."""
    return repr([_plain(value) for value in row])


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return sorted(map(repr, map(_plain, value)))
    return round(value, 6) + 0.0 if isinstance(value, float) and isfinite(value) else value


def contents(state: State) -> list[tuple[str, str, list[str]]]:
    """The tables with names instead of numbers; their order and that of their rows mean nothing."""
    found = []
    for spec, tables in state.tables.items():
        keys = tables["keys"].join(tables["streams"], on="g").drop("g")
        for name, table in tables.items():
            if name in ("keys", "streams"):
                continue
            named = table.join(keys, on="k").drop("k") if "k" in table.columns else table
            named = named.join(tables["streams"], on="g").drop("g") if "g" in named.columns else named
            if not named.is_empty():
                found.append((spec, name, sorted(map(text, named.select(sorted(named.columns)).rows()))))
    return sorted(found)


def emitted(result: Result) -> list[str]:
    return sorted(text(row) for each in result.rows for row in each.rows())


def both(input_: Input, cuts: Sequence[int], *, round_trip: bool) -> Iterator[tuple[Result, Result]]:
    """Step by step: the output with all specs, and with idle ones skipped."""
    runner = engine(input_.specs)
    every: State | None = None
    lazy: State | None = None
    was: int | None = None
    for records, safe in batches(input_.events, cuts):
        mine = frame(records)
        stepped = runner.advance(every, mine, safe)
        skipped = runner.advance(lazy, mine, safe, was)
        every, lazy, was = stepped.state, skipped.state, safe
        if round_trip:
            lazy = State.from_bytes(lazy.to_bytes())
        yield stepped, skipped
    nothing = frame([])
    assert was is not None
    yield runner.advance(every, nothing, was), runner.advance(lazy, nothing, was)


def still_open(result: Result, input_: Input) -> dict[tuple[int, int], Open]:
    """The open windows, without those of keys that may be forgotten a little later."""
    return {each: open_ for each, open_ in result.report.open.items() if input_.specs[each].ttl_us is None}


def check(input_: Input, cuts: Sequence[int], *, round_trip: bool) -> None:
    late: dict[str, dict[tuple[int, int], int]] = {"late": {}, "dropped": {}}
    for stepped, skipped in both(input_, cuts, round_trip=round_trip):
        assert not stepped.failed
        assert not skipped.failed
        assert emitted(stepped) == emitted(skipped)
        for name in ("late_log", "dropped", "dead"):
            found = [sorted(getattr(result, name).rows()) for result in (stepped, skipped)]
            assert found[0] == found[1]
        assert still_open(stepped, input_) == still_open(skipped, input_)
        assert stepped.report.next_close_us == skipped.report.next_close_us
        for name, total in late.items():
            total.update(getattr(skipped.report, name))
            assert total == getattr(stepped.report, name)
    # The last step works on every spec, so that everything due to expire has expired.
    assert contents(stepped.state) == contents(skipped.state)


def test_leaving_idle_specs_out_changes_nothing(full_size: bool) -> None:
    def property_(input_: Input, cuts: frozenset[int], round_trip: bool) -> None:
        check(input_, sorted(cuts), round_trip=round_trip)

    run_property(200 if full_size else 6, property_, input_=inputs(), cuts=CUTS, round_trip=st.booleans())


def test_also_with_records_that_are_older_than_safe_time(full_size: bool) -> None:
    def property_(input_: Input, cuts: frozenset[int], round_trip: bool) -> None:
        ticks = {index + 1 for index, each in enumerate(input_.events) if isinstance(each, Tick)}
        check(input_, sorted(ticks | cuts), round_trip=round_trip)

    run_property(
        200 if full_size else 6,
        property_,
        input_=inputs(true_ticks=False),
        cuts=CUTS,
        round_trip=st.booleans(),
    )


MINUTE = 60_000_000
RECORD = {
    "stream": pl.Int64, "version": pl.Int32, "key": pl.String, "source": pl.Int32, "txid": pl.Int64,
    "id": pl.Int64, "created_us": pl.Int64, "event_us": pl.Int64,
}  # fmt: skip


def record(stream: int, at: int, key: str = "a") -> pl.DataFrame:
    return pl.DataFrame([(stream, 1, key, 1, at, at, at, at)], schema=RECORD, orient="row")


@pytest.mark.parametrize(
    "spec",
    [
        WindowSpec(kind="tumbling", duration_us=MINUTE),
        WindowSpec(kind="tumbling", duration_us=MINUTE, clock="event"),
        WindowSpec(kind="session", gap_us=MINUTE, clock="event"),
        WindowSpec(kind="group", emission="changes", ttl_us=MINUTE),
        WindowSpec(kind="rows", size=5, emission="changes", ttl_us=MINUTE),
        WindowSpec(kind="count", size=5, ttl_us=MINUTE),
    ],
    ids=lambda spec: f"{spec.kind}-{spec.clock}",
)
def test_state_that_is_no_longer_needed_is_dropped(spec: WindowSpec) -> None:
    runner = Engine({(1, 1): spec})
    state = runner.advance(None, record(1, 0), 0).state
    tables = ("open", "sealed", "buffer", "groups", "counts", "seen", "empty")
    was = 0
    for minute in range(1, 30):
        state = runner.advance(state, [], minute * MINUTE, was).state
        was = minute * MINUTE
    [left] = state.tables.values()
    assert [name for name in tables if name in left and not left[name].is_empty()] == []


def test_an_idle_spec_keeps_its_tables_and_summary() -> None:
    specs = {(n, 1): WindowSpec(kind="tumbling", duration_us=n * MINUTE) for n in (10, 20)}
    runner = Engine(specs)
    before = runner.advance(None, [record(10, 0), record(20, 0)], 0).state
    assert before.size()
    after = runner.advance(before, record(10, 1), 1, 0).state
    idle, busy = specs[20, 1].to_json(), specs[10, 1].to_json()
    assert after.tables[idle] is before.tables[idle]
    assert after.summary(idle) is before.summary(idle)
    assert after.summary(busy) is not before.summary(busy)


@pytest.mark.parametrize(
    "spec",
    [
        WindowSpec(kind="tumbling", duration_us=MINUTE, late="drop"),
        WindowSpec(kind="session", gap_us=MINUTE, late="drop"),
        WindowSpec(kind="tumbling", duration_us=MINUTE, clock="event", late="drop", keep_us=10 * MINUTE),
        WindowSpec(kind="group", emission="changes", ttl_us=10 * MINUTE),
        WindowSpec(kind="rows", size=5, emission="changes", ttl_us=10 * MINUTE),
    ],
    ids=lambda spec: f"{spec.kind}-{spec.clock}",
)
def test_a_tick_that_was_left_out_counts_for_records_that_are_older(spec: WindowSpec) -> None:
    """Key b keeps the spec from being due when a is closed or can be forgotten."""
    runner = Engine({(1, 1): spec})
    before = runner.advance(None, [record(1, 0), record(1, 5 * MINUTE, "b")], 6 * MINUTE + 1).state
    late = record(1, 9 * MINUTE)
    later = 12 * MINUTE
    outputs = []
    for was in (None, 6 * MINUTE + 1):
        state = runner.advance(before, [], later, was).state
        skipped = state.tables[spec.to_json()] is before.tables[spec.to_json()]
        assert skipped == (was is not None)
        result = runner.advance(state, late, later, None if was is None else later)
        last = runner.advance(result.state, [], later, None)
        outputs.append(
            ([emitted(each) for each in (result, last)], contents(last.state), result.report.dropped)
        )
    assert outputs[0] == outputs[1]
