"""Inputs on which another engine was measured to be wrong in most of its windows: here all are right.

The exact results are computed from the whole input at once, without the oracle.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import pytest

from tests.windows.engine_adapter import engine_output
from tests.windows.oracle import Aggregate, Event, Output, Record, Row, Spec, Tick

SECOND = 1_000_000
MINUTE = 60 * SECOND
TOTAL = (Aggregate("sum", "amount", "total"),)

Window = tuple[str, int, int]  # key, start, end
Totals = dict[Window, tuple[int, int]]  # records, sum


def log(arrivals: Iterable[tuple[str, int]]) -> list[Record]:
    """Records (key, event time) in the order of the log, one created each millisecond."""
    return [
        Record(
            1, key, 1 + number // 10, number, number * 1_000, time, {"amount": number % 97 - 20}, number % 3
        )
        for number, (key, time) in enumerate(arrivals)
    ]


def amount(record: Record) -> int:
    value = record.values["amount"]
    assert isinstance(value, int)
    return value


def run(spec: Spec, records: list[Record], batch: int = 1_000) -> Output:
    """The engine's output, in batches, with a tick at the end that is after every window."""
    end = max(max(record.created_us, record.event_us or 0) for record in records) + 3_600 * SECOND
    events: list[Event] = [*records, Tick(end)]
    return engine_output({(1, 1): spec}, events, cuts=range(0, len(events), batch), round_trip=True)


def aligned(duration: int, slide: int) -> Callable[[Record], list[Window]]:
    """The windows that contain a record."""

    def windows(record: Record) -> list[Window]:
        time = record.event_us or 0
        first = (time - duration) // slide + 1
        return [(record.key, n * slide, n * slide + duration) for n in range(first, time // slide + 1)]

    return windows


def exact(records: list[Record], windows: Callable[[Record], list[Window]]) -> Totals:
    """The correct result."""
    count: Counter[Window] = Counter()
    total: Counter[Window] = Counter()
    for record in records:
        for window in windows(record):
            count[window] += 1
            total[window] += amount(record)
    return {window: (count[window], total[window]) for window in count}


def totals(row: Row) -> tuple[Window, tuple[int, int]]:
    return (row.key, row.start_us, row.end_us), (row.count, int(row.aggregates["total"] or 0))


def last_revisions(rows: list[Row]) -> Totals:
    """The view of a consumer that replaces a window by its next revision."""
    return dict(map(totals, sorted(rows, key=lambda row: row.revision)))


def assert_each_window_once(given: Output, expected: Totals) -> None:
    assert sorted(map(totals, given.rows)) == sorted(expected.items())
    assert {row.revision for row in given.rows} == {1}
    assert not +given.late


def disordered(seconds: int) -> list[Record]:
    """Ten records a second for ten minutes, each up to this many seconds late."""
    random = Random(seconds)
    return log(("a", n * SECOND // 10 - random.randrange(seconds * SECOND)) for n in range(6_000))


def tumbling(**options: Any) -> Spec:
    return Spec(kind="tumbling", duration_us=MINUTE, clock="event", aggregates=TOTAL, **options)


@pytest.mark.parametrize("batch", [100, 997, 100_000])
def test_in_order_and_bounded(batch: int) -> None:
    records = log(("a", n * SECOND // 10) for n in range(12_000))
    given = run(tumbling(), records, batch)
    assert_each_window_once(given, exact(records, aligned(MINUTE, MINUTE)))


def test_in_order_by_the_ingest_clock() -> None:
    spec = Spec(kind="tumbling", duration_us=SECOND, aggregates=TOTAL)
    records = log(("a", n * 1_000) for n in range(12_000))  # event time is the time of creation here
    assert_each_window_once(run(spec, records), exact(records, aligned(SECOND, SECOND)))


def per_partition_batches(partitions: int, size: int, rounds: int) -> list[tuple[int, int]]:
    """Partition and time: all partitions hold the same hours and are read in turns, a batch at a time."""
    return [
        (partition, (turn * size + n) * SECOND)
        for turn in range(rounds)
        for partition in range(partitions)
        for n in range(size)
    ]


def test_records_in_per_partition_batches() -> None:
    records = log((f"p{partition}", time) for partition, time in per_partition_batches(8, 500, 3))
    given = run(tumbling(), records, 500)
    assert_each_window_once(given, exact(records, aligned(MINUTE, MINUTE)))


@pytest.mark.parametrize("grace_us", [0, 120 * SECOND])
def test_one_key_in_per_partition_batches(grace_us: int) -> None:
    """Without enough grace windows come out early, but the last revision of each is right."""
    records = log(("a", time) for _, time in per_partition_batches(8, 120, 2))
    given = run(tumbling(grace_us=grace_us), records, 120)
    expected = exact(records, aligned(MINUTE, MINUTE))
    assert last_revisions(given.rows) == expected
    if grace_us:
        assert_each_window_once(given, expected)


@pytest.mark.parametrize("seconds", [2, 5, 20])
def test_final_with_disorder_within_grace(seconds: int) -> None:
    records = disordered(seconds)
    given = run(tumbling(grace_us=seconds * SECOND), records)
    assert_each_window_once(given, exact(records, aligned(MINUTE, MINUTE)))


@pytest.mark.parametrize("seconds", [2, 5, 20])
@pytest.mark.parametrize("graceful", [True, False])
def test_changes_with_the_same_disorder(seconds: int, graceful: bool) -> None:
    records = disordered(seconds)
    given = run(tumbling(grace_us=seconds * SECOND if graceful else 0, emission="changes"), records)
    count: Counter[Window] = Counter()
    total: Counter[Window] = Counter()
    expected = []
    for record in records:
        [window] = aligned(MINUTE, MINUTE)(record)
        count[window] += 1
        total[window] += amount(record)
        expected.append((window, (count[window], total[window])))
    assert list(map(totals, given.rows)) == expected
    assert [row.revision for row in given.rows] == [row.count for row in given.rows]


def test_gaps_of_five_minutes_leave_no_phantoms() -> None:
    times = [burst * 6 * MINUTE + n * SECOND for burst in range(10) for n in range(60)]
    records = log(("a", time) for time in times)
    expected = exact(records, aligned(MINUTE, MINUTE))
    assert len(expected) == 10
    assert_each_window_once(run(tumbling(), records, 25), expected)


def test_sliding_with_a_record_every_45_seconds() -> None:
    spec = Spec(kind="sliding", duration_us=MINUTE, slide_us=10 * SECOND, clock="event", aggregates=TOTAL)
    records = log(("a", n * 45 * SECOND) for n in range(200))
    expected = exact(records, aligned(MINUTE, 10 * SECOND))
    assert_each_window_once(run(spec, records, 7), expected)


@pytest.mark.parametrize("disorder", [0, 20])
def test_sessions_of_five_users(disorder: int) -> None:
    random = Random(5)
    times: dict[str, list[int]] = defaultdict(list)
    for number in range(5):
        time = 0
        for _ in range(400):
            time += random.choice((1, 5, 12, 29, 30, 31, 300)) * SECOND
            times[f"u{number}"].append(time)
    arrivals = [(user, time) for user, each in times.items() for time in each]
    arrivals.sort(key=lambda arrival: arrival[1] + random.randrange(disorder * SECOND + 1))
    records = log(arrivals)

    expected: Totals = {}
    for user in times:
        mine = sorted((record.event_us or 0, amount(record)) for record in records if record.key == user)
        begins = [n for n in range(len(mine)) if n == 0 or mine[n][0] - mine[n - 1][0] >= 30 * SECOND]
        for begin, end in zip(begins, [*begins[1:], len(mine)], strict=True):
            window = (user, mine[begin][0], mine[end - 1][0] + 30 * SECOND)
            expected[window] = (end - begin, sum(each for _, each in mine[begin:end]))

    spec = Spec(
        kind="session",
        gap_us=30 * SECOND,
        clock="event",
        grace_us=disorder * SECOND,
        aggregates=TOTAL,
    )
    given = run(spec, records, 33)
    assert_each_window_once(given, expected)
    assert not any(row.replaces for row in given.rows)


@pytest.mark.parametrize("clock", ["ingest", "event"])
@pytest.mark.parametrize("step", [1, 2, 4])
def test_count_windows_of_a_key_come_in_the_order_of_the_log(clock: Any, step: int) -> None:
    """The records of one push have the same time of creation, and event times may go backwards."""
    records = [Record(1, f"k{number % 3}", 1, number, 0, 1_000 - number, {}, 1) for number in range(300)]
    last: dict[str, int] = {}
    for row in run(Spec(kind="count", clock=clock, size=4, step=step), records).rows:
        ((_, _, first, _, _),) = row.sources
        assert first > last.get(row.key, -1)
        last[row.key] = first
    assert len(last) == 3


@pytest.mark.parametrize("kind", ["tumbling", "sliding", "session"])
@pytest.mark.parametrize("batch", [1, 7, 200])
def test_a_backfill_that_pauses_loses_nothing(kind: str, batch: int) -> None:
    """Old records, and between two of them a pause in which the key counts as silent."""
    pause = 30 * SECOND
    sizes = {
        "tumbling": {"duration_us": 60},
        "sliding": {"duration_us": 60, "slide_us": 20},
        "session": {"gap_us": 5},
    }
    shape = {name: value * SECOND for name, value in sizes[kind].items()}
    spec = Spec(kind=kind, clock="event", **shape)  # type: ignore[arg-type]
    now = 1_000_000 * SECOND
    records = [
        Record(1, "k", 1, number, now + number * pause, number * 7 * SECOND, {}, 1) for number in range(100)
    ]
    given = run(spec, records, batch)
    assert not +given.dropped
    newest = {row.window_id: row.count for row in sorted(given.rows, key=lambda row: row.revision)}
    assert sum(newest.values()) == 100 * {"tumbling": 1, "sliding": 3, "session": 1}[kind]
