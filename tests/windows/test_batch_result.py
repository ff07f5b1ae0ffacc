"""Records fed batch by batch, at full size a million, end in the totals of one group-by over all of them."""

from collections.abc import Iterator

import polars as pl
import pytest

from queenspark.windows import Aggregate, Engine, State, WindowSpec

RECORDS = 1_000_000
SMALL = 200_000
KEYS = 1_000
BATCH = 50_000
SECOND = 1_000_000
MINUTE = 60 * SECOND
DISORDER = 5 * SECOND
AGGREGATES = (
    Aggregate(function="sum", inputs=("amount",), types=("Int64",), name="total"),
    Aggregate(function="min", inputs=("amount",), types=("Int64",), name="least"),
    Aggregate(function="max", inputs=("price",), types=("Float64",), name="dearest"),
    Aggregate(function="avg", inputs=("price",), types=("Float64",), name="mean"),
)
TOTALS = [
    pl.len().cast(pl.Int64).alias("count"),
    pl.when(pl.col("amount").count() > 0).then(pl.col("amount").sum()).alias("total"),
    pl.col("amount").min().alias("least"),
    pl.col("price").max().alias("dearest"),
    pl.col("price").mean().alias("mean"),
]
WINDOW = ["key", "start_us", "end_us"]


@pytest.fixture(scope="module")
def log(full_size: bool) -> pl.DataFrame:
    """A thousand keys for two minutes, at full size for ten, up to five seconds out of order."""
    numbers = pl.DataFrame({"n": pl.int_range(RECORDS if full_size else SMALL, eager=True)})
    noise = pl.col("n").hash(seed=7)
    return numbers.select(
        stream=pl.lit(1, pl.Int64),
        version=pl.lit(1, pl.Int32),
        key=pl.format("k{}", pl.col("n").hash(seed=1) % KEYS),
        source=(pl.col("n") % 4).cast(pl.Int32),
        txid=pl.col("n") // 10,
        id=pl.col("n"),
        created_us=pl.col("n") * 600,
        event_us=pl.col("n") * 600 - (noise % DISORDER).cast(pl.Int64),
        amount=pl.when(pl.col("n") % 11 != 0).then(
            (pl.col("n").hash(seed=2) % 10_001).cast(pl.Int64) - 5_000
        ),
        price=(pl.col("n").hash(seed=3) % 100_000).cast(pl.Float64) / 8,
    )


def batches(log: pl.DataFrame) -> Iterator[tuple[pl.DataFrame, int]]:
    """The log in pieces, each with a true tick, and a last tick behind every window."""
    for piece in log.iter_slices(BATCH):
        yield piece, piece["created_us"].max()  # type: ignore[misc]
    yield log.clear(), log["created_us"][-1] + 3_600 * SECOND


def emitted(spec: WindowSpec, log: pl.DataFrame) -> pl.DataFrame:
    """The engine's output, with the state serialised between batches."""
    engine = Engine({(1, 1): spec})
    state: State | None = None
    rows = []
    for piece, safe_us in batches(log):
        result = engine.advance(state, piece, safe_us)
        assert not result.failed
        state = State.from_bytes(result.state.to_bytes())
        rows += result.rows
        assert not any(result.report.late.values())
    assert result.report.open_windows == 0
    return pl.concat(rows)


def assert_same_totals(got: pl.DataFrame, expected: pl.DataFrame) -> None:
    assert got["revision"].unique().to_list() == [1]
    assert got.height == expected.height
    columns = [*WINDOW, "count", "total", "least", "dearest"]
    both = [
        each.sort(WINDOW).with_columns(pl.col("count", "total").cast(pl.Int64)) for each in (got, expected)
    ]
    assert both[0].select(columns).equals(both[1].select(columns))
    assert ((both[0]["mean"] - both[1]["mean"]).abs() <= both[1]["mean"].abs() * 1e-9 + 1e-9).all()


def test_tumbling(log: pl.DataFrame) -> None:
    spec = WindowSpec(
        kind="tumbling", duration_us=MINUTE, clock="event", grace_us=DISORDER, aggregates=AGGREGATES
    )
    start = pl.col("event_us").floordiv(MINUTE) * MINUTE
    expected = log.group_by("key", start_us=start, end_us=start + MINUTE).agg(TOTALS)
    assert_same_totals(emitted(spec, log), expected)


def test_sliding(log: pl.DataFrame) -> None:
    slide = 10 * SECOND
    spec = WindowSpec(
        kind="sliding",
        duration_us=MINUTE,
        slide_us=slide,
        clock="event",
        grace_us=DISORDER,
        aggregates=AGGREGATES,
    )
    last = pl.col("event_us").floordiv(slide) * slide
    copies = pl.concat(log.with_columns(start_us=last - back * slide) for back in range(MINUTE // slide))
    expected = copies.group_by("key", "start_us", end_us=pl.col("start_us") + MINUTE).agg(TOTALS)
    assert_same_totals(emitted(spec, log), expected)


def test_tumbling_by_the_ingest_clock(log: pl.DataFrame) -> None:
    spec = WindowSpec(kind="tumbling", duration_us=MINUTE, aggregates=AGGREGATES)
    start = pl.col("created_us").floordiv(MINUTE) * MINUTE
    expected = log.group_by("key", start_us=start, end_us=start + MINUTE).agg(TOTALS)
    assert_same_totals(emitted(spec, log), expected)


def test_session(log: pl.DataFrame) -> None:
    gap = 2 * SECOND
    spec = WindowSpec(kind="session", gap_us=gap, clock="event", grace_us=DISORDER, aggregates=AGGREGATES)
    ordered = log.sort("key", "event_us")
    begins = (pl.col("event_us").diff() >= gap).fill_null(value=True).cum_sum().over("key")
    expected = (
        ordered.with_columns(session=begins)
        .group_by("key", "session")
        .agg(pl.col("event_us").min().alias("start_us"), pl.col("event_us").max().alias("last_us"), *TOTALS)
        .with_columns(end_us=pl.col("last_us") + gap)
    )
    assert_same_totals(emitted(spec, log), expected)
