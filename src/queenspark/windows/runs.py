"""Runs: the rows of a group in sequence, for vectorised operations over whole columns.

Polars processes one group after the other in `over`, which is slow with many small groups. In runs a running
sum is the difference of two running sums of the whole column, and so on.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

RUN = ("w", "row", "first_row")
_WORD = 2**64
_HALF = 2**63


def in_runs(rows: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Sort rows by one or two numbers, stably.

    `w` numbers the runs, `row` the rows, `first_row` is the start of each run.
    """
    group = pl.col(by[0])
    if len(by) > 1:
        group = group.cast(pl.Int128) * _WORD + pl.col(by[1])
    rows = rows.with_columns(w=group)
    if not rows["w"].is_sorted():
        rows = rows.sort("w", maintain_order=True)
    begins = (pl.col("w") != pl.col("w").shift(1)).fill_null(True)
    return rows.with_columns(
        w=begins.cum_sum(),
        row=pl.int_range(pl.len(), dtype=pl.Int64),
        first_row=pl.when(begins).then(pl.int_range(pl.len(), dtype=pl.UInt32)).forward_fill(),
    )


def running_sum(column: pl.Expr) -> pl.Expr:
    """The sum of each row and the earlier ones of its run; for integers, which lose no precision."""
    return _difference(column, pl.col("first_row"))


def rolling_sum(column: pl.Expr, low: pl.Expr) -> pl.Expr:
    """The sum of each row and the earlier ones down to the row `low`."""
    return _difference(column, low)


def _difference(column: pl.Expr, low: pl.Expr) -> pl.Expr:
    total = column.cum_sum()
    return total - (total - column).gather(low)


def running_max(column: pl.Expr, k: pl.Expr) -> pl.Expr:
    """The largest value so far in the run of ascending keys `k`, for comparison with `in_run` only."""
    return in_run(column, k).cum_max()


def in_run(column: pl.Expr, k: pl.Expr) -> pl.Expr:
    """Map a time to a number that is larger in every later run of ascending keys `k`."""
    return k.cast(pl.Int128) * _WORD + column + _HALF


def of_run(number: pl.Expr, k: pl.Expr) -> pl.Expr:
    """Map back to the time, null if it is not of this run."""
    return pl.when(number // _WORD == k).then((number % _WORD - _HALF).cast(pl.Int64))
