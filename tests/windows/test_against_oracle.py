"""The engine and the oracle agree row for row, for any input and any split into batches."""

from dataclasses import replace
from decimal import Decimal
from itertools import product

import pytest
from hypothesis import event
from hypothesis import strategies as st

from queenspark.windows import empty, state
from tests.windows.engine_adapter import differences, engine_output
from tests.windows.oracle import Aggregate, Aligned, Event, Output, Record, Spec, Tick, Value, expected_output
from tests.windows.properties import run_property
from tests.windows.streams import MS, Clock, Emission, Input, LatePolicy, inputs, specs

pytestmark = pytest.mark.timeout(1_200)  # hypothesis may take minutes to make a failing example small

CLOCKED = list(
    product(
        ("tumbling", "sliding", "session"),
        ("final", "changes"),
        ("drop", "warn", "process"),
        ("ingest", "event"),
    )
)
NUMBERED = [
    (kind, emission, None, clock)
    for kind, emission in (
        ("count", "final"),
        ("count", "changes"),
        ("rows", "changes"),
        ("group", "changes"),
    )
    for clock in ("ingest", "event")
]
CASES = CLOCKED + NUMBERED

CUTS = st.frozensets(st.integers(0, 60), max_size=12)
BUCKETS = st.sampled_from((1, 1, 2, 3, 16))


@pytest.fixture(autouse=True)
def few_empty_windows_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reach the bound with few windows, also after far-future records."""
    monkeypatch.setattr(empty, "MOST", 7)
    monkeypatch.setattr(Aligned, "most_empty", 7)


@pytest.fixture(autouse=True)
def small_tables_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write states as changes of rows."""
    monkeypatch.setattr(state, "_LARGE", 2)


def assert_same(expected: Output, actual: Output, input_: Input) -> None:
    found = differences(expected, actual, input_.specs)
    assert not found, "\n".join(found[:20])


def assert_ids_differ(actual: Output, input_: Input) -> None:
    """Id and revision tell rows apart, as long as no key is forgotten and comes back."""
    names = [
        (row.stream, row.version, row.key, row.window_id or (row.txid, row.id), row.revision)
        for row in actual.rows
        if input_.specs[row.stream, row.version].clock == "ingest"
    ]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("kind", "emission", "late", "clock"), CASES)
def test_every_kind_emission_policy_and_clock(
    kind: str, emission: Emission, late: LatePolicy | None, clock: Clock, full_size: bool
) -> None:
    def property_(input_: Input, cuts: frozenset[int], buckets: int, round_trip: bool) -> None:
        expected = expected_output(input_.specs, input_.events)
        actual = engine_output(input_.specs, input_.events, cuts=cuts, buckets=buckets, round_trip=round_trip)
        event(f"late {bool(+expected.late)}, dropped {bool(+expected.dropped)}, dead {bool(expected.dead)}")
        assert_same(expected, actual, input_)
        assert_ids_differ(actual, input_)

    subject = specs(kind, emission, late, clock)
    run_property(
        100 if full_size else 3,
        property_,
        input_=inputs(subject),
        cuts=CUTS,
        buckets=BUCKETS,
        round_trip=st.booleans(),
    )


@pytest.mark.parametrize("clock", ["ingest", "event"])
def test_ticks_that_lie(clock: Clock, full_size: bool) -> None:
    """Records older than safe time are late with the ingest clock too; batches then end where ticks are."""

    def property_(input_: Input, cuts: frozenset[int], round_trip: bool) -> None:
        ticks = {index + 1 for index, each in enumerate(input_.events) if isinstance(each, Tick)}
        actual = engine_output(input_.specs, input_.events, cuts=ticks | cuts, round_trip=round_trip)
        assert_same(expected_output(input_.specs, input_.events), actual, input_)

    subject = specs(clock=clock)
    run_property(
        400 if full_size else 8,
        property_,
        input_=inputs(subject, true_ticks=False),
        cuts=CUTS,
        round_trip=st.booleans(),
    )


def test_same_input_cut_differently(full_size: bool) -> None:
    """Batches, buckets and round trips of the state through bytes leave no trace in the output."""

    def property_(input_: Input, cuts: frozenset[int], buckets: int) -> None:
        whole = engine_output(input_.specs, input_.events)
        pieces = engine_output(input_.specs, input_.events, cuts=cuts, buckets=buckets, round_trip=True)
        one_by_one = engine_output(input_.specs, input_.events, cuts=range(len(input_.events)))
        assert_same(whole, pieces, input_)
        assert_same(whole, one_by_one, input_)

    run_property(400 if full_size else 8, property_, input_=inputs(), cuts=CUTS, buckets=st.integers(1, 16))


def test_changes_come_in_the_order_of_the_log(full_size: bool) -> None:
    """The newest record of each row of a key is not older than that of the row before it."""

    def property_(input_: Input, cuts: frozenset[int]) -> None:
        last: dict[tuple[int, int, str], tuple[int, int]] = {}
        for row in engine_output(input_.specs, input_.events, cuts=cuts).rows:
            if input_.specs[row.stream, row.version].emission == "changes":
                newest = (row.txid or 0, row.id or 0)
                if input_.specs[row.stream, row.version].kind == "session":
                    newest = max((txid, id_) for _, _, _, txid, id_ in row.sources)
                key = (row.stream, row.version, row.key)
                assert newest >= last.get(key, newest)
                last[key] = newest

    run_property(400 if full_size else 8, property_, input_=inputs(specs(emission="changes")), cuts=CUTS)


def without_empty_windows(spec: Spec) -> Spec:
    return replace(spec, emit_empty=False)


@pytest.mark.parametrize("kind", ["tumbling", "sliding", "session"])
def test_report_of_open_windows_and_their_next_close(kind: str, full_size: bool) -> None:
    """The reported time is the first tick that seals something."""

    def property_(input_: Input, cuts: frozenset[int], buckets: int) -> None:
        expected = expected_output(input_.specs, input_.events)
        actual = engine_output(input_.specs, input_.events, cuts=cuts, buckets=buckets, round_trip=True)
        assert actual.open_windows == expected.open_windows
        assert actual.next_close_us == expected.next_close_us

    finals = specs(kind, "final").map(without_empty_windows)
    run_property(
        400 if full_size else 8,
        property_,
        input_=inputs(finals, others=finals),
        cuts=CUTS,
        buckets=BUCKETS,
    )


def test_variance_survives_a_large_mean() -> None:
    """The difference of two large sums would have no correct digit here."""
    spec = Spec(
        kind="tumbling",
        duration_us=1_000 * MS,
        aggregates=(
            Aggregate("var_samp", "units", "units"),
            Aggregate("var_samp", "score", "score"),
            Aggregate("stddev_samp", "price", "price"),
        ),
    )
    events: list[Event] = []
    for number in range(100):
        values: dict[str, Value] = {
            "units": 10**9 + number % 2,
            "score": 1e9 + number % 2,
            "price": Decimal(10**9 + number % 2),
        }
        events.append(Record(1, "a", 1, number, number * MS, None, values))
    [row] = engine_output({(1, 1): spec}, [*events, Tick(1_000 * MS)], cuts=range(0, 100, 7)).rows
    assert row.aggregates["units"] == pytest.approx(25 / 99, rel=1e-6)
    assert row.aggregates["score"] == pytest.approx(25 / 99, rel=1e-6)
    assert row.aggregates["price"] == pytest.approx((25 / 99) ** 0.5, rel=1e-6)
