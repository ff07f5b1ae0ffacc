"""The oracle itself, against results written by hand; times are in seconds here."""

import math
from collections.abc import Sequence
from decimal import Decimal
from itertools import zip_longest
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.windows.engine_adapter import same_value
from tests.windows.oracle import (
    FAILED,
    Aggregate,
    Event,
    Output,
    Record,
    Spec,
    Tick,
    Value,
    aggregate,
    expected_output,
)  # fmt: skip
from tests.windows.streams import Input, inputs

SECOND = 1_000_000
TIMES = ("duration", "slide", "gap", "grace", "idle", "keep")


def spec(kind: Any, **options: Any) -> Spec:
    """A spec with times in seconds: `spec("tumbling", duration=10)`."""
    given = {f"{name}_us" if name in TIMES else name: value for name, value in options.items()}
    return Spec(kind=kind, **{n: v * SECOND if n.endswith("_us") else v for n, v in given.items()})


def run(asked: Spec, *events: tuple[str, int] | tuple[str, int, int | None] | int) -> Output:
    """Records are (key, created, event time), a lone number is a tick; txid is 1, id the index."""
    log: list[Event] = []
    for number, each in enumerate(events):
        if isinstance(each, int):
            log.append(Tick(each * SECOND))
        else:
            key, created, *happened = each
            time = happened[0] if happened else created
            event_us = None if time is None else time * SECOND
            log.append(Record(1, key, 1, number, created * SECOND, event_us, {"n": number}))
    return expected_output({(1, 1): asked}, log)


def brief(given: Output) -> list[tuple[Any, ...]]:
    """Key, start, end, number of records, revision of each row."""
    return [
        (row.key, row.start_us // SECOND, row.end_us // SECOND, row.count, row.revision) for row in given.rows
    ]


# Tumbling

TUMBLING: list[tuple[str, Spec, list[Any], list[tuple[Any, ...]]]] = [
    (
        "the ingest clock seals at the tick that reaches the end",
        spec("tumbling", duration=10),
        [("a", 1), ("b", 9), ("a", 10), 9, 10, 19, 20],
        [("a", 0, 10, 1, 1), ("b", 0, 10, 1, 1), ("a", 10, 20, 1, 1)],
    ),
    (
        "and grace later, if there is one",
        spec("tumbling", duration=10, grace=5),
        [("a", 1), 14, ("a", 14), ("a", 9), 15],
        [("a", 0, 10, 2, 1)],
    ),
    (
        "windows before the epoch are aligned like the others",
        spec("tumbling", duration=10),
        [("a", -1), ("a", -10), ("a", -11), 0],
        [("a", -20, -10, 1, 1), ("a", -10, 0, 2, 1)],
    ),
    (
        "the event clock seals when the key's largest time less grace reaches the end, key by key",
        spec("tumbling", duration=10, clock="event", grace=2),
        [("a", 0, 3), ("a", 0, 11), ("a", 0, 9), ("b", 0, 50), ("a", 0, 12)],
        [("a", 0, 10, 2, 1)],
    ),
    (
        "a late record is a revision of its window, or its first emission",
        spec("tumbling", duration=10, clock="event"),
        [("a", 0, 15), ("a", 0, 25), ("a", 0, 12), ("a", 0, 13), ("a", 0, 3)],
        [("a", 10, 20, 1, 1), ("a", 10, 20, 2, 2), ("a", 10, 20, 3, 3), ("a", 0, 10, 1, 1)],
    ),
    (
        "with drop it is nothing",
        spec("tumbling", duration=10, clock="event", late="drop"),
        [("a", 0, 15), ("a", 0, 25), ("a", 0, 12), ("a", 0, 20), ("a", 0, 30)],
        [("a", 10, 20, 1, 1), ("a", 20, 30, 2, 1)],
    ),
    (
        "a silent key is closed by a tick",
        spec("tumbling", duration=10, clock="event", grace=1, idle=5),
        [("a", 8, 8), 12, 13, 14, 40],
        [("a", 0, 10, 1, 1)],
    ),
    (
        "or by its own next record, which is then late",
        spec("tumbling", duration=10, clock="event", grace=1, idle=5),
        [("a", 8, 8), ("a", 12, 9), ("a", 17, 7)],
        [("a", 0, 10, 2, 1), ("a", 0, 10, 3, 2)],
    ),
    (
        "a key is forgotten after keep, so an old record starts over",
        spec("tumbling", duration=10, clock="event", idle=5, keep=30),
        [("a", 8, 8), ("a", 38, 8), 48],
        [("a", 0, 10, 1, 1), ("a", 0, 10, 1, 1)],
    ),
    (
        "but not while it has an open window",
        spec("tumbling", duration=10, clock="event", idle=5, keep=30, late="drop"),
        [("a", 8, 55), ("a", 38, 8), ("a", 60, 56), 80],
        [("a", 50, 60, 1, 1)],
    ),
    (
        "empty windows come out between those with records and on silence",
        spec("tumbling", duration=10, emit_empty=True),
        [("a", 5), ("a", 35), 30, 60],
        [("a", start, start + 10, int(start in (0, 30)), 1) for start in range(0, 60, 10)],
    ),
    (
        "an empty window gets revision 2 from a late record",
        spec("tumbling", duration=10, clock="event", emit_empty=True),
        [("a", 0, 5), ("a", 0, 25), ("a", 0, 15)],
        [("a", 0, 10, 1, 1), ("a", 10, 20, 0, 1), ("a", 10, 20, 1, 2)],
    ),
    (
        "empty windows end where the key is forgotten",
        spec("tumbling", duration=10, clock="event", emit_empty=True, idle=5, keep=30),
        [("a", 5, 5), 100, ("a", 100, 100)],
        [("a", 0, 10, 1, 1), ("a", 10, 20, 0, 1), ("a", 20, 30, 0, 1)],
    ),
    (
        "the same without the tick",
        spec("tumbling", duration=10, clock="event", emit_empty=True, idle=5, keep=30),
        [("a", 5, 5), ("a", 100, 100)],
        [("a", 0, 10, 1, 1), ("a", 10, 20, 0, 1), ("a", 20, 30, 0, 1)],
    ),
    (
        "changes: a row per record, none at sealing",
        spec("tumbling", duration=10, clock="event", emission="changes"),
        [("a", 0, 1), ("b", 0, 1), ("a", 0, 12), ("a", 0, 2), 100],
        [("a", 0, 10, 1, 1), ("b", 0, 10, 1, 1), ("a", 10, 20, 1, 1), ("a", 0, 10, 2, 2)],
    ),
]

# Sliding: 20 seconds every 10

SLIDING: list[tuple[str, Spec, list[Any], list[tuple[Any, ...]]]] = [
    (
        "every window that contains the record, also one that began before it",
        spec("sliding", duration=20, slide=10),
        [("a", 5), 10, 20],
        [("a", -10, 10, 1, 1), ("a", 0, 20, 1, 1)],
    ),
    (
        "the slide need not divide the duration",
        spec("sliding", duration=25, slide=10),
        [("a", 20), ("a", 24), 100],
        [("a", 0, 25, 2, 1), ("a", 10, 35, 2, 1), ("a", 20, 45, 2, 1)],
    ),
    (
        "lateness is judged window by window",
        spec("sliding", duration=20, slide=10, clock="event"),
        [("a", 0, 5), ("a", 0, 10), ("a", 0, 7), ("a", 0, 30)],
        [("a", -10, 10, 1, 1), ("a", -10, 10, 2, 2), ("a", 0, 20, 3, 1), ("a", 10, 30, 1, 1)],
    ),
    (
        "and dropped window by window",
        spec("sliding", duration=20, slide=10, clock="event", late="drop"),
        [("a", 0, 5), ("a", 0, 10), ("a", 0, 7), ("a", 0, 30)],
        [("a", -10, 10, 1, 1), ("a", 0, 20, 3, 1), ("a", 10, 30, 1, 1)],
    ),
    (
        "empty ones too",
        spec("sliding", duration=20, slide=10, emit_empty=True),
        [("a", 5), 40],
        [("a", -10, 10, 1, 1), ("a", 0, 20, 1, 1), ("a", 10, 30, 0, 1), ("a", 20, 40, 0, 1)],
    ),
    (
        "changes: a row per record and window",
        spec("sliding", duration=20, slide=10, emission="changes"),
        [("a", 5), ("a", 15)],
        [("a", 0, 20, 1, 1), ("a", -10, 10, 1, 1), ("a", 10, 30, 1, 1), ("a", 0, 20, 2, 2)],
    ),
]

# Sessions with a gap of 10

SESSION: list[tuple[str, Spec, list[Any], list[tuple[Any, ...]]]] = [
    (
        "records less than the gap apart are one session, of each key",
        spec("session", gap=10),
        [("a", 0), ("b", 5), ("a", 9), ("a", 19), 19, 29],
        [("a", 0, 19, 2, 1), ("b", 5, 15, 1, 1), ("a", 19, 29, 1, 1)],
    ),
    (
        "a record out of order bridges two",
        spec("session", gap=10, clock="event", grace=20),
        [("a", 0, 0), ("a", 0, 15), ("a", 0, 8), ("a", 0, 45)],
        [("a", 0, 25, 3, 1)],
    ),
    (
        "a late record within a sealed session is a revision",
        spec("session", gap=10, clock="event"),
        [("a", 0, 0), ("a", 0, 8), ("a", 0, 40), ("a", 0, 5)],
        [("a", 0, 18, 2, 1), ("a", 0, 18, 3, 2)],
    ),
    (
        "one that makes it longer is a new window",
        spec("session", gap=10, clock="event"),
        [("a", 0, 0), ("a", 0, 40), ("a", 0, 5), ("a", 0, 6)],
        [("a", 0, 10, 1, 1), ("a", 0, 15, 2, 1), ("a", 0, 16, 3, 1)],
    ),
    (
        "one that touches nothing is a session of its own",
        spec("session", gap=10, clock="event"),
        [("a", 0, 0), ("a", 0, 40), ("a", 0, 15)],
        [("a", 0, 10, 1, 1), ("a", 15, 25, 1, 1)],
    ),
    (
        "a record before an open session joins it although it is older than C",
        spec("session", gap=10, clock="event", late="drop"),
        [("a", 0, 50), ("a", 0, 59), ("a", 0, 45), ("a", 0, 100)],
        [("a", 45, 69, 3, 1)],
    ),
    (
        "dropped when late, although it touches",
        spec("session", gap=10, clock="event", late="drop"),
        [("a", 0, 0), ("a", 0, 40), ("a", 0, 5), ("a", 0, 50)],
        [("a", 0, 10, 1, 1), ("a", 40, 50, 1, 1)],
    ),
    (
        "changes: the session after each record",
        spec("session", gap=10, clock="event", grace=20, emission="changes"),
        [("a", 0, 0), ("a", 0, 15), ("a", 0, 8), ("a", 0, 8)],
        [("a", 0, 10, 1, 1), ("a", 15, 25, 1, 1), ("a", 0, 25, 3, 3), ("a", 0, 25, 4, 4)],
    ),
]

# Count and rows

COUNT: list[tuple[str, Spec, list[Any], list[tuple[Any, ...]]]] = [
    (
        "a window comes out with its last record; the rest waits",
        spec("count", size=2),
        [("a", 1), ("b", 2), ("a", 3), ("a", 4), 1000],
        [("a", 1, 3, 2, 1)],
    ),
    (
        "windows overlap when the step is shorter; times are those of first and last in log order",
        spec("count", size=3, step=2, clock="event"),
        [("a", 0, 9), ("a", 0, 5), ("a", 0, 7), ("a", 0, 6), ("a", 0, 1)],
        [("a", 9, 7, 3, 1), ("a", 7, 1, 3, 1)],
    ),
    (
        "changes: each window that holds the record",
        spec("count", size=3, step=2, emission="changes"),
        [("a", 1), ("a", 2), ("a", 3), ("a", 4)],
        [("a", 1, 1, 1, 1), ("a", 1, 2, 2, 2), ("a", 1, 3, 3, 3), ("a", 3, 3, 1, 1), ("a", 3, 4, 2, 2)],
    ),
]

ROWS: list[tuple[str, Spec, list[Any], list[tuple[Any, ...]]]] = [
    (
        "each record with those before it",
        spec("rows", size=2, emission="changes"),
        [("a", 1), ("b", 2), ("a", 3), 100, ("a", 100), ("b", 101)],
        [("a", 1, 1, 1, 1), ("b", 2, 2, 1, 1), ("a", 1, 3, 2, 1), ("a", 3, 100, 2, 1), ("b", 2, 101, 2, 1)],
    ),
]

CASES = {
    f"{kind}: {name}": case
    for kind, table in {
        "tumbling": TUMBLING,
        "sliding": SLIDING,
        "session": SESSION,
        "count": COUNT,
        "rows": ROWS,
    }.items()
    for name, *case in table
}


@pytest.mark.parametrize(("asked", "events", "expected"), CASES.values(), ids=CASES.keys())
def test_outputs_written_by_hand(asked: Spec, events: list[Any], expected: list[tuple[Any, ...]]) -> None:
    assert brief(run(asked, *events)) == expected


def test_late_records_are_counted_and_logged() -> None:
    asked = spec("tumbling", duration=10, clock="event", late="warn", keep=20, idle=20)
    given = run(asked, ("a", 0, 45), ("a", 0, 55), ("a", 0, 42), ("a", 0, 3))
    assert brief(given) == [("a", 40, 50, 1, 1), ("a", 40, 50, 2, 2)]
    assert given.late == {(1, 1): 2}
    assert given.dropped == {(1, 1): 1}  # 0 … 10 ended before 55 - 20
    assert [(line.id, line.time_us, line.closed_us) for line in given.late_log] == [
        (2, 42 * SECOND, 55 * SECOND),
        (3, 3 * SECOND, 55 * SECOND),
    ]


def test_a_record_that_is_late_in_one_of_two_windows_is_counted_once() -> None:
    asked = spec("sliding", duration=20, slide=10, clock="event", late="drop")
    given = run(asked, ("a", 0, 5), ("a", 0, 10), ("a", 0, 7))
    assert (given.late, given.dropped) == ({(1, 1): 1}, {(1, 1): 1})


def test_a_record_without_a_time_is_dead_and_moves_no_clock() -> None:
    asked = spec("tumbling", duration=10, clock="event", idle=5)
    given = run(asked, ("a", 0, 3), ("a", 9, None), ("a", 4, 4), 10)
    assert given.dead == [(1, 1, "a", 1, 1)]
    assert brief(given) == [("a", 0, 10, 2, 1)]
    assert not given.late


def test_sessions_list_the_ids_they_replace() -> None:
    asked = spec("session", gap=10, clock="event")
    events = [("a", 0, 0), ("a", 0, 19), ("a", 0, 40), ("a", 0, 9), ("a", 0, 33), ("a", 0, 100)]
    given = run(asked, *events)
    assert [(row.window_id, row.replaces) for row in given.rows] == [
        ("1:a:0:10000", ()),
        ("1:a:19000:29000", ()),
        ("1:a:0:19000", ("1:a:0:10000",)),  # 9 … 19 does not touch 19 … 29
        ("1:a:33000:50000", ()),  # joined the open 40 … 50
    ]


def test_an_open_session_takes_sealed_ones_in_and_names_them_when_sealed() -> None:
    asked = spec("session", gap=10, clock="event")
    given = run(asked, ("a", 0, 0), ("a", 0, 15), ("a", 0, 9), ("a", 0, 60))
    # 0 … 10 was sealed by 15; 9 … 19 touches it and the open 15 … 25
    assert [(row.window_id, row.revision, row.replaces) for row in given.rows] == [
        ("1:a:0:10000", 1, ()),
        ("1:a:0:25000", 1, ("1:a:0:10000",)),
    ]


def test_changes_of_a_session_name_the_sessions_that_went_into_it() -> None:
    asked = spec("session", gap=10, clock="event", grace=20, emission="changes")
    given = run(asked, ("a", 0, 0), ("a", 0, 15), ("a", 0, 8), ("a", 0, 9))
    assert [row.replaces for row in given.rows] == [(), (), ("1:a:0:10000", "1:a:15000:25000"), ()]


def test_ids_hold_milliseconds_the_rest_version_and_position() -> None:
    specs = {
        (7, 1): Spec(kind="tumbling", duration_us=1_500),
        (7, 3): Spec(kind="rows", size=2, emission="changes"),
    }
    log: list[Event] = [
        Record(7, "k", 5, 6, -1, None, {}),
        Record(7, "k", 5, 6, -1, None, {}, version=3),
        Record(7, "k", 5, 7, 2_999, None, {}, version=3),
        Tick(0),
    ]
    ids = [row.window_id for row in expected_output(specs, log).rows]
    assert ids == ["7:k:-1:-1:v3:5-6", "7:k:-1:2:v3:5-7", "7:k:-2:0:u500-0"]


def test_sources_hold_first_and_last_position() -> None:
    log: list[Event] = [
        Record(1, "a", 5, 9, 0, None, {}, source=2),
        Record(1, "a", 6, 1, 0, None, {}, source=1),
        Record(1, "a", 7, 3, 0, None, {}, source=2),
        Tick(SECOND),
    ]
    [row] = expected_output({(1, 1): spec("tumbling", duration=1)}, log).rows
    assert row.sources == ((1, 6, 1, 6, 1), (2, 5, 9, 7, 3))


def test_open_windows_and_the_tick_that_seals_the_first() -> None:
    given = run(spec("tumbling", duration=10, grace=2), ("a", 3), ("a", 14))
    assert (given.open_windows, given.next_close_us) == (2, 12 * SECOND)
    given = run(spec("tumbling", duration=10, clock="event", grace=2, idle=50), ("a", 3, 3))
    assert (given.open_windows, given.next_close_us) == (1, 53 * SECOND)


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("function", "column", "expected"),
    [
        ("count", [1, None, 3], 2),
        ("count", [None], 0),
        ("count", [NAN, 1.0], 2),
        ("sum", [None], None),
        ("sum", [], None),
        ("sum", [2**63 - 1, 1, -1], 2**63 - 1),
        ("sum", [-(2**63), 1, -1], -(2**63)),
        ("sum", [0.5, 0.25], 0.75),
        ("sum", [1.0, NAN], NAN),
        ("sum", [INF, -INF], NAN),
        ("avg", [1, None, 2], 1.5),
        ("avg", [INF, 1.0], INF),
        ("avg", [2**63 - 1, -(2**63)], -0.5),
        ("min", [NAN, 2.0, 1.0], 1.0),
        ("min", [NAN, NAN], NAN),
        ("min", ["b", None, "a"], "a"),
        ("max", [2.0, NAN, 3.0], NAN),
        ("max", [2, None, 3], 3),
        ("first", [None, 4, 5], None),
        ("last", [4, 5, None], None),
        ("var_samp", [1], None),
        ("var_samp", [NAN], None),
        ("var_samp", [1, 2, 3, 4], 5 / 3),
        ("var_pop", [1], 0.0),
        ("var_pop", [1, 2, 3, 4], 5 / 4),
        ("stddev_samp", [2.0, None, 4.0], math.sqrt(2)),
        ("stddev_samp", [1.0, NAN], NAN),
        ("stddev_pop", [2.0, 4.0], 1.0),
        ("median", [1, 5, None, 9, 10], 7.0),
        ("median", [NAN, 1.0, 2.0], 2.0),
        ("collect_list", [2, None, 1, 2], [2, 1, 2]),
        ("collect_set", [2, None, 1, 2], [2, 1]),
        ("collect_set", [], []),
    ],
)
def test_aggregates(function: str, column: list[Value], expected: Value) -> None:
    got = over(Aggregate(function, "n", "n"), column)
    assert same_value(expected, got)


def over(each: Aggregate, column: list[Value], order: Sequence[Value] = ()) -> Value:
    """An aggregate over a column `n`, and `by` for the functions that have an order."""
    rows = zip_longest(column, order)
    records = [Record(1, "a", 1, n, n, values={"n": value, "by": by}) for n, (value, by) in enumerate(rows)]
    return aggregate(each, records)["n"]


def test_aggregates_with_options() -> None:
    """These are Spark's results too."""
    assert over(Aggregate("first", "n", "n", ignore_nulls=True), [None, 4, 5]) == 4
    assert over(Aggregate("last", "n", "n", ignore_nulls=True), [4, 5, None]) == 5
    assert over(Aggregate("count", "n", "n", distinct=True), [NAN, NAN, 0.0, -0.0, None]) == 2
    assert over(Aggregate("percentile", "n", "n", parameter=0.3), [1, 5, None, 9, 10]) == pytest.approx(4.6)
    assert over(Aggregate("percentile", "n", "n", parameter=0.25), [INF, 1.0]) == INF
    assert over(Aggregate("lag", "n", "n", parameter=2), [1, 2, 3]) == 1
    assert over(Aggregate("lag", "n", "n", parameter=3), [1, 2, 3]) is None
    by = [1.0, 1.0, NAN, None, 1.0, NAN]
    assert over(Aggregate("max_by", "n", "n", by="by"), ["a", "b", "c", "d", None, "f"], by) == "f"
    assert over(Aggregate("min_by", "n", "n", by="by"), ["a", "b", "c", "d", None, "f"], by) is None
    assert over(Aggregate("min_by", "n", "n", by="by"), ["a", "b", "c"], [2, 1, 1]) == "c"


def test_sums_and_averages_that_do_not_fit() -> None:
    def result(function: str, column: str, *values: Value) -> dict[str, Value]:
        records = [Record(1, "a", 1, n, n, values={column: value}) for n, value in enumerate(values)]
        return aggregate(Aggregate(function, column, "x"), records)

    assert result("sum", "units", 2**63 - 1, 1) == {"x": None, "x!": FAILED}
    assert result("sum", "units", -(2**63), -1) == {"x": None, "x!": FAILED}
    assert result("sum", "price", Decimal("0.10"), Decimal("0.20")) == {"x": Decimal("0.30"), "x!": None}
    assert result("avg", "price", Decimal("1.00"), Decimal("-2.00"), Decimal("0.50"))["x"] == Decimal(
        "-0.166667"
    )
    most = Decimal(10**34 - 1)
    assert result("sum", "huge", most)["x"] == most
    assert result("sum", "huge", most, Decimal(1)) == {"x": None, "x!": FAILED}


@given(input_=inputs(), kept=st.frozensets(st.integers(0, 60)))
def test_true_ticks_never_change_the_output(input_: Input, kept: frozenset[int]) -> None:
    """Only when: the last tick seals the same windows, whichever ticks came before it."""
    last = len(input_.events) - 1
    fewer = [
        each
        for index, each in enumerate(input_.events)
        if not isinstance(each, Tick) or index in kept or index == last
    ]
    some, every = expected_output(input_.specs, fewer), expected_output(input_.specs, input_.events)
    assert sorted(map(repr, some.rows)) == sorted(map(repr, every.rows))
    assert (some.late_log, some.late, some.dropped) == (every.late_log, every.late, every.dropped)
