"""`python -m bench.windows`: the window engine on one core, compared with plain polars.

Run by `make bench` in a process of its own, with one thread for polars.
"""

import os

os.environ.setdefault("POLARS_MAX_THREADS", "1")

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import polars as pl
from rich.console import Console
from rich.table import Table

from queenspark.windows import Aggregate, Engine, State, WindowSpec

RECORDS = 2_000_000
BATCH = 500_000
SECOND = 1_000_000
MINUTE = 60 * SECOND
KEYS = (5_000, 200_000)
CURVE = (10_000, 100_000, 1_000_000)
AGGREGATES = (
    Aggregate(function="count", name="records"),
    Aggregate(function="sum", inputs=("amount",), types=("Int64",), name="total"),
)

Plain = Callable[[pl.DataFrame], pl.DataFrame]


class Case(NamedTuple):
    """A kind of window, and the same computation in plain polars."""

    name: str
    spec: dict[str, Any]
    plain: Plain


def _totals(frame: pl.DataFrame, *by: Any) -> pl.DataFrame:
    return frame.group_by(*by).agg(pl.len(), pl.col("amount").sum())


def _sliding(frame: pl.DataFrame) -> pl.DataFrame:
    pane = pl.col("created_us") // (10 * SECOND) * (10 * SECOND)
    panes = frame.group_by("key", pane.alias("pane")).agg(pl.len().alias("n"), pl.col("amount").sum())
    starts = pl.int_ranges(pl.col("pane") - 50 * SECOND, pl.col("pane") + 1, 10 * SECOND)
    windows = panes.with_columns(start=starts).explode("start")
    return windows.group_by("key", "start").agg(pl.col("n").sum(), pl.col("amount").sum())


def _sessions(frame: pl.DataFrame) -> pl.DataFrame:
    rows = frame.sort("key", "event_us")
    fresh = (pl.col("event_us").diff() >= 5 * SECOND) | (pl.col("key") != pl.col("key").shift(1))
    return _totals(rows.with_columns(number=fresh.fill_null(True).cum_sum()), "key", "number")


def _changes(frame: pl.DataFrame) -> pl.DataFrame:
    by = ("key", "start")
    rows = frame.with_columns(start=pl.col("created_us") // MINUTE)
    return rows.with_columns(pl.int_range(pl.len()).over(by).alias("n"), pl.col("amount").cum_sum().over(by))


def _rows(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.col("amount").rolling_sum(100, min_samples=1).over("key"))


def _tumbling(frame: pl.DataFrame) -> pl.DataFrame:
    return _totals(frame, "key", pl.col("created_us") // MINUTE)


EVENT = {"clock": "event", "grace_us": 5 * SECOND}
CASES = [
    Case("tumbling 1 min, final", {"kind": "tumbling", "duration_us": MINUTE}, _tumbling),
    Case(
        "tumbling 1 min, final, event time", {"kind": "tumbling", "duration_us": MINUTE, **EVENT}, _tumbling
    ),
    Case(
        "sliding 60 s by 10 s, final",
        {"kind": "sliding", "duration_us": MINUTE, "slide_us": 10 * SECOND},
        _sliding,
    ),
    Case(
        "session, gap 5 s, final, event time", {"kind": "session", "gap_us": 5 * SECOND, **EVENT}, _sessions
    ),
    Case(
        "tumbling 1 min, changes",
        {"kind": "tumbling", "duration_us": MINUTE, "emission": "changes"},
        _changes,
    ),
    Case("rows buffer of 100", {"kind": "rows", "size": 100, "emission": "changes"}, _rows),
]


def records(count: int, keys: int, *, every_us: int = 200, start: int = 0) -> pl.DataFrame:
    """Records in order, spread over the keys."""
    number = pl.int_range(start, start + count, eager=True)
    key = number * 2_654_435_761 % 1_000_003 % keys
    constant = {"stream": pl.Int64, "version": pl.Int32, "source": pl.Int32}
    return pl.DataFrame(
        {
            **{name: pl.repeat(1, count, dtype=kind, eager=True) for name, kind in constant.items()},
            "key": "user-" + key.cast(pl.String),
            "txid": number // 100,
            "id": number,
            "created_us": number * every_us,
            "event_us": number * every_us,
            "amount": number * 31 % 1000,
        }
    )


def engine_rate(case: Case, frame: pl.DataFrame) -> float:
    """Records a second through the engine, in batches."""
    engine = Engine({(1, 1): WindowSpec(**case.spec, aggregates=AGGREGATES)})
    state: State | None = None
    began = time.perf_counter()
    for start in range(0, frame.height, BATCH):
        batch = frame[start : start + BATCH]
        result = engine.advance(state, batch, int(batch["created_us"][-1]))
        assert not result.failed
        state = result.state
    return frame.height / (time.perf_counter() - began)


def plain_rate(case: Case, frame: pl.DataFrame) -> float:
    """Records a second in plain polars, all at once."""
    began = time.perf_counter()
    case.plain(frame)
    return frame.height / (time.perf_counter() - began)


def milliseconds_with(open_windows: int) -> float:
    """Milliseconds for a batch of 10,000 records with this many open windows."""
    engine = Engine({(1, 1): WindowSpec(kind="tumbling", duration_us=3600 * SECOND, aggregates=AGGREGATES)})
    state = engine.advance(None, records(open_windows, open_windows, every_us=1), 0).state
    times = []
    for number in range(5):
        batch = records(10_000, open_windows, every_us=1, start=open_windows + number * 10_000)
        began = time.perf_counter()
        state = engine.advance(state, batch, 0).state
        times.append(1000 * (time.perf_counter() - began))
    return sorted(times)[2]


def main() -> None:
    """Measure and print."""
    console = Console(width=120)
    table = Table(title=f"The window engine on one core, {RECORDS:,} records in batches of {BATCH:,}")
    table.add_column("measurement")
    for heading in ("keys", "engine", "plain polars", "ratio"):
        table.add_column(heading, justify="right")
    for keys in KEYS:
        frame = records(RECORDS, keys)
        for case in CASES:
            engine, plain = engine_rate(case, frame), plain_rate(case, frame)
            cells = (
                f"{keys:,}",
                f"{engine / 1e6:.2f} M/s",
                f"{plain / 1e6:.2f} M/s",
                f"{engine / plain:.2f}",
            )
            table.add_row(case.name, *cells)
    console.print(table)
    curve = ", ".join(f"{count:,}: {milliseconds_with(count):.0f} ms" for count in CURVE)
    console.print(f"A batch of 10,000 records, by number of open windows: {curve}")


if __name__ == "__main__":
    main()
