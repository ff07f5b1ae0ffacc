"""Checks the rows of `bench.files` against rows that polars computes from its input files."""

from pathlib import Path

import polars as pl

COLUMNS = ["key", "start", "c", "s", "lo", "hi", "mean"]
_MEAN_ERROR = 1e-9


def records(folder: Path) -> pl.DataFrame:
    """The input, in order."""
    return (
        pl.read_parquet(f"{folder}/*.parquet").sort("seq").with_columns(pl.col("at").dt.cast_time_unit("us"))
    )


def rows(folder: Path) -> pl.DataFrame:
    """The rows that a job has written."""
    return pl.read_parquet(f"{folder}/**/*.parquet")


def time_windows(given: pl.DataFrame, seconds: int, slide: int) -> pl.DataFrame:
    """Tumbling and sliding windows: their rows, and `end`."""
    panes = _totals(given.with_columns(start=pl.col("at").dt.truncate(f"{slide}s")), "key", "start")
    backs = pl.DataFrame({"back": range(0, seconds, slide)}).select(pl.duration(seconds="back").alias("back"))
    found = panes.join(backs, how="cross").with_columns(start=pl.col("start") - pl.col("back"))
    return _with_mean(
        found.group_by("key", "start").agg(
            pl.col("c", "s").sum(), pl.col("lo").min(), pl.col("hi").max(),
            end=pl.col("start").first() + pl.duration(seconds=seconds),
        )
    )  # fmt: skip


def sessions(given: pl.DataFrame, gap: int) -> pl.DataFrame:
    """Session windows: their rows, and `end`."""
    found = given.sort("key", "at")
    is_same = (pl.col("key") == pl.col("key").shift()) & (pl.col("at").diff() < pl.duration(seconds=gap))
    found = found.with_columns(number=(~is_same.fill_null(False)).cum_sum())
    found = found.with_columns(
        start=pl.col("at").min().over("number"),
        end=pl.col("at").max().over("number") + pl.duration(seconds=gap),
    )
    return _with_mean(_totals(found, "key", "start", "end"))


def changes(given: pl.DataFrame, seconds: int) -> pl.DataFrame:
    """A row for each record: the totals of its tumbling window up to it."""
    value = pl.col("value")
    count = pl.int_range(1, pl.len() + 1)
    running = {"c": count, "s": value.cum_sum(), "lo": value.cum_min(), "hi": value.cum_max()}
    found = given.with_columns(start=pl.col("at").dt.truncate(f"{seconds}s"))
    return _with_mean(found.with_columns(each.over("key", "start").alias(n) for n, each in running.items()))


def rolling(given: pl.DataFrame, size: int) -> pl.DataFrame:
    """A row for each record, with the mean of the last ones of its key."""
    mean = pl.col("value").rolling_mean(size, min_samples=1).over("key")
    return given.select("key", pl.lit(1).alias("c"), pl.col("value").alias("s"), mean.alias("mean"))


def check_rows(found: pl.DataFrame, wanted: pl.DataFrame) -> None:
    """Assert that rows are the expected ones, in any order. Means may differ in the last digits."""
    assert found.height == wanted.height, f"{found.height} rows, not {wanted.height}"
    columns = [name for name in COLUMNS if name in found.columns]  # `mean` is the last one to sort by
    found, wanted = (frame.select(columns).sort(columns) for frame in (found, wanted))
    same = found.select((pl.col(name) == wanted[name]).alias(name) for name in columns if name != "mean")
    is_same = same.select(pl.all_horizontal(pl.all())).to_series()
    is_same &= ((found["mean"] - wanted["mean"]).abs() <= _MEAN_ERROR).fill_null(False)
    first = [frame.filter(~is_same).head(1).rows() for frame in (found, wanted)]
    assert is_same.all(), f"{(~is_same).sum()} rows differ: the first is {first[0]}, not {first[1]}"


def check_plain(plain_in: Path, wanted: pl.DataFrame, last: object) -> int:
    """Assert that the rows of plain Spark are the expected ones, except for windows still open at the end.

    Plain Spark never emits windows that end after the last event time. Returns the number of its rows.
    """
    plain = pl.read_parquet(f"{plain_in}/*.parquet")
    window = pl.col(next(name for name in plain.columns if name.endswith("window")))
    plain = plain.with_columns(window.struct.field("start"))
    check_rows(plain, wanted.filter(pl.col("end") <= pl.lit(last)))
    return plain.height


def _totals(given: pl.DataFrame, *by: str) -> pl.DataFrame:
    value = pl.col("value")
    totals = {"c": pl.len().cast(pl.Int64), "s": value.sum(), "lo": value.min(), "hi": value.max()}
    return given.group_by(by).agg(**totals)


def _with_mean(found: pl.DataFrame) -> pl.DataFrame:
    return found.with_columns(mean=pl.col("s") / pl.col("c"))
