"""The state survives a round trip through bytes, and states of older layouts are upgraded."""

from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest

from queenspark.windows import Aggregate, Engine, Result, State, StateError, WindowSpec

SPECS = {
    (1, 1): WindowSpec(kind="tumbling", duration_us=50_000),
    (2, 1): WindowSpec(kind="sliding", duration_us=60_000, slide_us=20_000, clock="event", grace_us=5_000),
    (3, 1): WindowSpec(kind="session", gap_us=30_000, clock="event", grace_us=5_000),
    (4, 2): WindowSpec(kind="count", size=7, step=3),
    (5, 1): WindowSpec(kind="rows", size=4, emission="changes"),
}
AGGREGATES = (
    Aggregate(function="sum", inputs=("amount",), types=("Int64",), name="total"),
    Aggregate(function="last", inputs=("amount",), types=("Int64",), name="newest"),
    Aggregate(function="count", inputs=("amount",), types=("Int64",), name="different", distinct=True),
)
STATES = sorted((Path(__file__).parent / "states").glob("layout-*.bin"))


def batch(number: int) -> pl.DataFrame:
    """Forty messages of three keys, read by every stream."""
    rows = [
        (stream, version, f"key-{n % 3}", 1 + n % 2, n, n, n * 1_000, n * 1_000 - n % 7 * 900, n * 5)
        for n in range(number * 40, number * 40 + 40)
        for stream, version in SPECS
    ]
    schema = {
        "stream": pl.Int64, "version": pl.Int32, "key": pl.String, "source": pl.Int32, "txid": pl.Int64,
        "id": pl.Int64, "created_us": pl.Int64, "event_us": pl.Int64, "amount": pl.Int64,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row")


def emitted(state: State) -> list[str]:
    """The output of the second batch and the silence after it."""
    result = Engine(SPECS).advance(state, batch(1), 500_000)
    return sorted(str(row) for frame in result.rows for row in frame.iter_rows(named=True))


@pytest.mark.parametrize("path", STATES, ids=lambda path: path.stem)
def test_older_layouts_are_brought_up_to_date(path: Path) -> None:
    fresh = Engine(SPECS).advance(None, batch(0), 40_000).state
    assert emitted(State.from_bytes(path.read_bytes())) == emitted(fresh)


def test_other_bytes_are_refused() -> None:
    newer = State().to_bytes().replace(b'"version":2', b'"version":9')
    with pytest.raises(StateError, match="layout 9"):
        State.from_bytes(newer)
    with pytest.raises(StateError, match="not a state"):
        State.from_bytes(b"nothing of the kind")


def many(first: int, count: int, clock: str = "ingest") -> pl.DataFrame:
    """A record for each of many keys; with event time, each key has its own."""
    number = pl.int_range(first, first + count, eager=True)
    return pl.DataFrame({
        "stream": pl.repeat(1, count, dtype=pl.Int64, eager=True),
        "version": pl.repeat(1, count, dtype=pl.Int32, eager=True),
        "key": ("key-" + number.cast(pl.String)),
        "source": pl.repeat(1, count, dtype=pl.Int32, eager=True),
        "txid": number, "id": number, "created_us": number, "event_us": number,
    })  # fmt: skip


@pytest.mark.parametrize("kind", ["tumbling", "session", "count"])
def test_a_delta_is_as_large_as_the_change(kind: str) -> None:
    sizes = {"tumbling": {"duration_us": 10**12}, "session": {"gap_us": 10**12}, "count": {"size": 5}}
    engine = Engine({(1, 1): WindowSpec(kind=kind, **sizes[kind])})  # type: ignore[arg-type]
    before = engine.advance(None, many(0, 50_000), 0).state
    after = engine.advance(before, many(49_900, 200), 0).state
    change = after.since(before)
    assert change is not None
    assert len(change) < len(after.to_bytes()) / 20
    assert before.after(change).since(after) is None


def test_windows_that_were_sealed_are_taken_out_of_a_state_by_their_numbers() -> None:
    spec = WindowSpec(kind="tumbling", duration_us=100, clock="event", late="drop")
    engine = Engine({(1, 1): spec})
    before = engine.advance(None, many(0, 50_000), 0).state
    later = many(60_000, 300).with_columns(key=many(0, 300)["key"])
    result = engine.advance(before, later, 0)
    assert sum(rows.height for rows in result.rows) == 300
    change = result.state.since(before)
    assert change is not None
    assert len(change) < len(result.state.to_bytes()) / 20
    assert before.after(change).since(result.state) is None


def test_nothing_new_is_no_change() -> None:
    state = Engine(SPECS).advance(None, batch(0), 40_000).state
    assert Engine(SPECS).advance(state, batch(0).clear(), 40_000).state.since(state) is None


def closing(
    state: State, specs: dict[tuple[int, int], WindowSpec], safe_us: int
) -> list[tuple[int, str, int]]:
    """Stream, key and count of the windows that a tick closes."""
    rows = Engine(specs).advance(state, batch(0).clear(), safe_us).rows
    return sorted(
        (row["stream"], row["key"], row["count"]) for frame in rows for row in frame.iter_rows(named=True)
    )


def test_a_stream_takes_its_windows_along_when_its_grace_changes() -> None:
    short = WindowSpec(kind="tumbling", duration_us=50_000)
    long = WindowSpec(kind="tumbling", duration_us=50_000, grace_us=30_000)
    before = {(1, 1): short, (2, 1): short, (3, 1): long}
    state = Engine(before).advance(None, batch(0), 40_000).state
    state = State.from_bytes(state.to_bytes())
    after = {(1, 1): long, (2, 1): short, (3, 1): long}
    counts = [(f"key-{n}", 14 if n == 0 else 13) for n in range(3)]
    assert closing(state, after, 50_000) == [(2, *pair) for pair in counts]
    assert closing(state, after, 80_000) == [(n, *pair) for n in (1, 2, 3) for pair in counts]


def test_the_state_of_a_removed_stream_is_dropped() -> None:
    spec = WindowSpec(kind="tumbling", duration_us=50_000)
    state = Engine({(1, 1): spec, (2, 1): spec}).advance(None, batch(0), 40_000).state
    left = Engine({(2, 1): spec}).advance(state, batch(0).clear(), 40_000)
    assert left.report.open_windows == 3
    assert Engine({}).advance(left.state, batch(0).clear(), 40_000).state.tables == {}


def test_the_next_close_of_empty_windows_is_when_a_tick_gives_one_out() -> None:
    """Also with event time, if the silence is long enough: otherwise the check would be in vain."""
    for more in ({}, {"clock": "event", "idle_us": 300_000, "grace_us": 5_000}):
        spec = WindowSpec(kind="tumbling", duration_us=50_000, emit_empty=True, **more)  # type: ignore[arg-type]
        engine = Engine({(1, 1): spec})
        state, safe = engine.advance(None, batch(0), 40_000).state, 40_000
        for _ in range(8):
            due = engine.advance(state, batch(0).clear(), safe).report.next_close_us
            assert due is not None
            assert not engine.advance(state, batch(0).clear(), due - 1).rows
            result = engine.advance(state, batch(0).clear(), due)
            assert result.rows
            state, safe = result.state, due


KINDS = {
    "tumbling": {"duration_us": 50_000},
    "sliding": {"duration_us": 60_000, "slide_us": 20_000, "emit_empty": True},
    "session": {"gap_us": 30_000},
    "count": {"size": 7, "step": 3},
    "rows": {"size": 4, "emission": "changes"},
    "group": {"emission": "changes", "ttl_us": 10_000},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_tick_without_records_needs_no_columns(kind: str) -> None:
    """The types of the inputs are those of the spec, for any batch."""
    spec = WindowSpec(kind=kind, aggregates=AGGREGATES, **KINDS[kind])  # type: ignore[arg-type]
    engine = Engine({(1, 1): spec})
    nothing = batch(0).drop("amount").clear()
    first = engine.advance(None, nothing, 0).state
    state = engine.advance(first, batch(0), 40_000).state
    assert engine.advance(State.from_bytes(state.to_bytes()), nothing, 500_000).state.tables
    assert engine.advance(state, [], 500_000).state.tables


def test_aggregates_in_another_order_find_their_parts() -> None:
    """A stream whose spec changes in place keeps the values of its open windows."""
    specs = [
        WindowSpec(kind="tumbling", duration_us=50_000, aggregates=aggregates)
        for aggregates in (AGGREGATES, AGGREGATES[::-1])
    ]
    state = Engine({(1, 1): specs[0]}).advance(None, batch(0), 40_000).state
    rows = [
        pl.concat(Engine({(1, 1): spec}).advance(state, [], 50_000).rows)
        .sort("key")
        .select("key", "total", "newest")
        for spec in specs
    ]
    assert rows[0].equals(rows[1])


def test_frames_of_several_streams_have_their_own_inputs() -> None:
    """Each frame needs only the inputs of its own streams' specs."""
    specs = {
        (1, 1): WindowSpec(kind="group", emission="changes", aggregates=AGGREGATES[:1]),
        (2, 1): WindowSpec(kind="group", emission="changes"),
    }
    mine = [batch(0).filter(pl.col("stream") == stream) for stream in (1, 2)]
    result = Engine(specs).advance(None, [mine[0], mine[1].drop("amount")], 0)
    assert sorted(frame["stream"][0] for frame in result.rows) == [1, 2]
    assert [frame.height for frame in result.rows] == [40, 40]


def test_groups_that_are_emitted_at_the_end() -> None:
    """One row for each key, once; those that emit changes have said it all before."""
    final = WindowSpec(kind="group", aggregates=AGGREGATES)
    specs = {(1, 1): final, (2, 1): WindowSpec(kind="group", emission="changes", aggregates=AGGREGATES)}
    engine = Engine(specs)
    first = engine.advance(None, batch(0), 40_000)
    result = engine.advance(State.from_bytes(first.state.to_bytes()), batch(1), 80_000)
    changes = pl.concat([*first.rows, *result.rows])
    assert changes["stream"].unique().to_list() == [2]
    columns = ["key", "count", "total", "newest", "different", "start_us", "window_id"]
    last = changes.sort("count").unique("key", keep="last").select(columns).sort("key")
    [rows] = engine.finish(result.state)
    assert rows["stream"].to_list() == [1, 1, 1]
    assert rows.select(columns).sort("key").equals(last)


@pytest.mark.parametrize("emission", ["final", "changes"])
@pytest.mark.parametrize("clock", ["event", "ingest"])
def test_windows_sealed_while_late_records_were_dropped_stay_as_they_are(clock: Any, emission: Any) -> None:
    """Their records are gone: a late one cannot make a second revision, and must not make another first."""
    dropping = WindowSpec(
        kind="sliding", duration_us=20, slide_us=10, clock=clock, emission=emission, late="drop"
    )
    processing = msgspec.structs.replace(dropping, late="process", grace_us=1)

    def records(*times: int) -> pl.DataFrame:
        rows = [(1, 1, "a", 1, 1, time, time, time, 1) for time in times]
        return pl.DataFrame(rows, schema=batch(0).schema, orient="row")

    def counts(result: Result) -> list[tuple[int, int, int]]:
        found = [each for rows in result.rows for each in rows.select("start_us", "revision", "count").rows()]
        return sorted(found)

    before = Engine({(1, 1): dropping}).advance(None, records(5, 6, 35), 35)
    state = State.from_bytes(before.state.to_bytes())
    after = Engine({(1, 1): processing})
    late = after.advance(state, records(7), 35)
    assert late.rows == []
    assert (late.report.late_now, late.report.dropped_now) == ({(1, 1): 1}, {(1, 1): 1})
    sealed = after.advance(late.state, records(62), 62)
    revised = after.advance(sealed.state, records(36), 62)
    assert counts(revised) == [(20, 2, 2), (30, 2, 2)]
    assert revised.dropped.is_empty()
    again = Engine({(1, 1): dropping}).advance(State.from_bytes(revised.state.to_bytes()), records(63), 63)
    last = after.advance(again.state, records(7, 37), 63)
    assert (last.rows, last.report.dropped_now) == ([], {(1, 1): 2})


@pytest.mark.parametrize("clock", ["event", "ingest"])
def test_empty_windows_follow_windows_that_were_open_when_they_were_requested(clock: Any) -> None:
    spec = WindowSpec(kind="tumbling", duration_us=50_000, clock=clock, idle_us=10_000)
    requested = {(1, 1): msgspec.structs.replace(spec, emit_empty=True)}
    records = batch(0).filter(pl.col("stream") == 1)
    state = Engine({(1, 1): spec}).advance(None, records, 40_000).state
    after = Engine(requested).advance(State.from_bytes(state.to_bytes()), [], 160_000)
    always = Engine(requested)
    expected = always.advance(always.advance(None, records, 40_000).state, [], 160_000)
    columns = ["key", "start_us", "count"]
    found, wanted = (pl.concat(each.rows).select(columns).sort(columns) for each in (after, expected))
    assert found.height == 9
    assert found.equals(wanted)
    assert after.report.next_close_us == expected.report.next_close_us
