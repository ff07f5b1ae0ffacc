"""A stream that fails stops no other one, and keeps its state."""

import polars as pl
import pytest

from queenspark.windows import Aggregate, Engine, State, WindowSpec

TOTAL = Aggregate(function="sum", inputs=("amount",), types=("Int64",), name="total")
SHARED = WindowSpec(kind="tumbling", duration_us=1_000, aggregates=(TOTAL,))
OTHER = WindowSpec(kind="group", emission="changes", aggregates=(TOTAL,))
SPECS = {(1, 1): SHARED, (2, 1): SHARED, (3, 1): SHARED, (4, 1): SHARED, (5, 1): OTHER}


def records(stream: int, first: int, kind: pl.DataType | None = None) -> pl.DataFrame:
    """Ten records, one each 10 µs."""
    number = pl.int_range(first, first + 10, eager=True)
    constant = {"stream": (stream, pl.Int64), "version": (1, pl.Int32), "source": (1, pl.Int32)}
    return pl.DataFrame({
        **{name: pl.repeat(value, 10, dtype=dtype, eager=True) for name, (value, dtype) in constant.items()},
        "key": "k" + (number % 2).cast(pl.String),
        "txid": number, "id": number, "created_us": number * 10, "event_us": number * 10,
        "amount": number.cast(kind or pl.Int64()),
    })  # fmt: skip


def totals(result_rows: list[pl.DataFrame]) -> dict[tuple[int, str], int]:
    rows = pl.concat([each.select("stream", "key", "total") for each in result_rows])
    return {(stream, key): total for stream, key, total in rows.rows()}


@pytest.mark.parametrize("bad", [1, 2, 4])
def test_streams_of_the_same_spec_go_on(bad: int) -> None:
    engine = Engine(SPECS)
    before = engine.advance(None, [records(n, 0) for n in (1, 2, 3, 5)], 0).state
    before = State.from_bytes(before.to_bytes())
    frames = [records(n, 10, pl.String() if n == bad else None) for n in range(1, 6)]
    result = engine.advance(before, frames, 200, 0)
    assert list(result.failed) == [(bad, 1)]
    assert "amount" in result.failed[bad, 1]
    assert {stream for stream, _ in totals(result.rows)} == {5}

    later = engine.advance(result.state, [], 1_000, 200)
    both, first, second = sum(range(0, 20, 2)), sum(range(0, 10, 2)), sum(range(10, 20, 2))
    expected = {n: second if n == 4 else both for n in range(1, 5)} | {bad: first}
    if bad == 4:
        del expected[4]
    assert {n: total for (n, key), total in totals(later.rows).items() if key == "k0"} == expected


def test_the_stream_can_go_on_later() -> None:
    engine = Engine({(1, 1): SHARED, (2, 1): SHARED})
    state = engine.advance(None, [records(1, 0), records(2, 0)], 0).state
    failed = engine.advance(state, [records(1, 10), records(2, 10, pl.String())], 150, 0)
    again = engine.advance(failed.state, records(2, 10), 150, 0)
    assert again.failed == {}
    whole = engine.advance(engine.advance(state, [records(1, 10), records(2, 10)], 150).state, [], 1_000)
    assert totals(engine.advance(again.state, [], 1_000).rows) == totals(whole.rows)


def test_a_column_that_is_missing_fails_only_its_stream() -> None:
    result = Engine(SPECS).advance(None, [records(1, 0).drop("amount"), records(2, 0)], 1_000)
    assert list(result.failed) == [(1, 1)]
    assert {stream for stream, _ in totals(result.rows)} == {2}


def test_a_column_of_nulls_has_any_type() -> None:
    nulls = records(1, 0).with_columns(amount=pl.lit(None))
    result = Engine(SPECS).advance(None, nulls, 1_000)
    assert not result.failed
    assert set(totals(result.rows).values()) == {None}
