"""Runs the engine over the oracle's events and returns its output in the oracle's form.

The only module of these tests that calls the engine, except for those that are about its own API.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, astuple, fields
from zlib import crc32

import polars as pl

from queenspark.windows import Aggregate, Engine, Report, State, WindowSpec, type_text
from tests.windows import oracle
from tests.windows.oracle import Event, Identity, Late, Output, Record, Row, Spec, Tick, Value

BEFORE_ALL_TICKS = -(2**60)

SCHEMA = {
    "stream": pl.Int64(),
    "version": pl.Int32(),
    "key": pl.String(),
    "source": pl.Int32(),
    "txid": pl.Int64(),
    "id": pl.Int64(),
    "created_us": pl.Int64(),
    "event_us": pl.Int64(),
    "amount": pl.Int64(),
    "units": pl.Int64(),
    "score": pl.Float64(),
    "price": pl.Decimal(12, 2),
    "huge": pl.Decimal(38, 4),
    "small": pl.Int16(),
    "label": pl.String(),
    "day": pl.Date(),
    "flag": pl.Boolean(),
}
RECORD_FIELDS = list(SCHEMA)[:8]
ROW_FIELDS = [field.name for field in fields(Row) if field.name != "aggregates"]


def window_spec(spec: Spec) -> WindowSpec:
    """The engine's spec; default values are left to the engine."""
    given = {
        field.name: getattr(spec, field.name)
        for field in fields(Spec)
        if field.default is MISSING or getattr(spec, field.name) != field.default
    }
    given["aggregates"] = tuple(map(engine_aggregate, spec.aggregates))
    return WindowSpec(**given)


def engine_aggregate(each: oracle.Aggregate) -> Aggregate:
    """The engine's form of an aggregate."""
    inputs = tuple(name for name in (each.column, each.by) if name is not None)
    return Aggregate(
        function=each.function,
        inputs=inputs,
        types=tuple(type_text(SCHEMA[name]) for name in inputs),
        name=each.name,
        distinct=each.distinct,
        ignore_nulls=each.ignore_nulls,
        where=each.where,
        rows=each.rows,
        parameter=each.parameter,
    )


def engine(specs: Mapping[Identity, Spec]) -> Engine:
    """An engine for these streams."""
    return Engine({identity: window_spec(spec) for identity, spec in specs.items()})


def frame(records: Iterable[Record]) -> pl.DataFrame:
    """A batch."""
    rows = [
        [getattr(record, name) for name in RECORD_FIELDS]
        + [record.values.get(name) for name in list(SCHEMA)[len(RECORD_FIELDS) :]]
        for record in records
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def batches(events: Sequence[Event], cuts: Iterable[int]) -> Iterator[tuple[list[Record], int]]:
    """The events cut before these indexes: the records of each piece and safe time at its end."""
    bounds = sorted({cut for cut in cuts if 0 < cut < len(events)})
    safe = BEFORE_ALL_TICKS
    for begin, end in zip([0, *bounds], [*bounds, len(events)], strict=True):
        records = []
        for event in events[begin:end]:
            if isinstance(event, Tick):
                safe = event.safe_us
            else:
                records.append(event)
        yield records, safe


def bucket(record: Record, buckets: int) -> int:
    """The bucket of a record's key."""
    return crc32(f"{record.stream}/{record.key}".encode()) % buckets


def _through_bytes(before: State | None, after: State) -> State:
    """The state after a round trip through its bytes and deltas."""
    whole = State.from_bytes(after.to_bytes())
    if before is None:
        return whole
    change = after.since(before)
    changed = before if change is None else before.after(change)
    assert changed.since(whole) is None, "the changes do not make the state"
    return changed


def engine_output(
    specs: Mapping[Identity, Spec],
    events: Sequence[Event],
    *,
    cuts: Iterable[int] = (),
    round_trip: bool = False,
    buckets: int = 1,
) -> Output:
    """The engine's output, fed batch by batch with a state per bucket."""
    runner = engine(specs)
    given = Output()
    states: list[State | None] = [None] * buckets
    reports: list[Report] = []
    for records, safe_us in batches(events, cuts):
        reports = []
        for number in range(buckets):
            mine = [record for record in records if bucket(record, buckets) == number]
            result = runner.advance(states[number], frame(mine), safe_us)
            assert not result.failed, result.failed
            states[number] = _through_bytes(states[number], result.state) if round_trip else result.state
            given.rows += rows(result.rows)
            given.dead += result.dead.select("stream", "version", "key", "txid", "id").rows()
            given.late_log += [Late(**line) for line in result.late_log.to_dicts()]
            reports.append(result.report)
    # counts run on from batch to batch, so the last report of each bucket says it all
    given.late = sum((Counter(report.late) for report in reports), Counter())
    given.dropped = sum((Counter(report.dropped) for report in reports), Counter())
    given.open_windows = sum(report.open_windows for report in reports)
    closings = [report.next_close_us for report in reports if report.next_close_us is not None]
    given.next_close_us = min(closings, default=None)
    return given


def rows(frames: Iterable[pl.DataFrame]) -> list[Row]:
    """Rows in the oracle's form, in the order in which they came."""
    found = []
    for each in frames:
        for values in each.to_dicts():
            row = {name: values.pop(name, None) for name in ROW_FIELDS}
            row["sources"] = tuple(tuple(source.values()) for source in row["sources"])
            row["replaces"] = tuple(sorted(row["replaces"]))
            found.append(Row(**row, aggregates=values))
    return found


# Comparing outputs


def differences(expected: Output, actual: Output, specs: Mapping[Identity, Spec]) -> list[str]:
    """The differences, as text; the order of rows is not compared."""
    found = [
        f"{what}: expected {wanted}, got {got}"
        for what, wanted, got in (
            ("dead", sorted(expected.dead), sorted(actual.dead)),
            ("late log", sorted(map(astuple, expected.late_log)), sorted(map(astuple, actual.late_log))),
            ("late", +expected.late, +actual.late),
            ("dropped", +expected.dropped, +actual.dropped),
        )
        if wanted != got
    ]
    wanted_rows, got_rows = Counter(map(identity, expected.rows)), Counter(map(identity, actual.rows))
    found += [f"missing: {row}" for row in (wanted_rows - got_rows).elements()]
    found += [f"not expected: {row}" for row in (got_rows - wanted_rows).elements()]
    if not found:
        pairs = zip(sorted(expected.rows, key=identity), sorted(actual.rows, key=identity), strict=True)
        found += [
            f"{wanted.window_id} revision {wanted.revision}: {problem}"
            for wanted, got in pairs
            for problem in different_aggregates(wanted, got, specs[wanted.stream, wanted.version])
        ]
    return found


def identity(row: Row) -> tuple[object, ...]:
    """Everything about a row that must be equal to the letter."""
    return tuple(_sortable(getattr(row, name)) for name in ROW_FIELDS)


def _sortable(value: object) -> object:
    return (value is not None, value)


def different_aggregates(wanted: Row, got: Row, spec: Spec) -> Iterator[str]:
    """The aggregates that differ."""
    names = [
        name for each in map(engine_aggregate, spec.aggregates) for name in (each.name, each.error) if name
    ]
    if list(got.aggregates) != names:
        yield f"columns {list(got.aggregates)}"
        return
    for each in spec.aggregates:
        if not same_value(wanted.aggregates[each.name], got.aggregates[each.name]):
            yield f"{each.name}: expected {wanted.aggregates[each.name]!r}, got {got.aggregates[each.name]!r}"
        failed = f"{each.name}!"
        if (wanted.aggregates.get(failed) is None) != (got.aggregates.get(failed) is None):
            yield f"{failed}: expected {wanted.aggregates.get(failed)!r}, got {got.aggregates[failed]!r}"


def same_value(wanted: Value, got: Value) -> bool:
    """Whether values are equal and of one type; floats nearly equal, NaN is NaN."""
    if isinstance(wanted, list):
        return len(wanted) == len(got) and all(map(same_value, wanted, got))
    if type(wanted) is not type(got):
        return False
    if not isinstance(wanted, float):
        return bool(wanted == got)
    if math.isnan(wanted):
        return math.isnan(got)
    return math.isclose(wanted, got, rel_tol=1e-9, abs_tol=1e-9)
