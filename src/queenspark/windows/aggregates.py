"""Aggregates over columns: each is made of mergeable parts.

A part is a column that can be computed from records, merged with parts of the same window, accumulated
record by record, and finished into the value that people see. Adding an aggregate means adding one
class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec
import polars as pl

from .errors import SpecError

_INTEGER = pl.Int128
_COUNT = pl.Int64()


class Part(NamedTuple):
    """One mergeable column of an aggregate."""

    name: str
    of_record: pl.Expr  # the part of a single record
    merge: Callable[[pl.Expr], pl.Expr]  # within a group
    accumulate: Callable[[pl.Expr], pl.Expr]  # running, in log order
    roll: Callable[[pl.Expr, int], pl.Expr]  # over the last n records, in log order
    whole: bool = False  # whole numbers that add up: `accumulate` and `roll` are not used


class Aggregate(msgspec.Struct, frozen=True):
    """A function over a column, under a name. `count` without a column counts records."""

    function: str
    column: str | None
    name: str

    def __post_init__(self) -> None:
        if self.function not in FUNCTIONS:
            known = ", ".join(FUNCTIONS)
            raise SpecError(f"aggregates: {self.function!r} is unknown; use one of {known}")
        if self.column is None and self.function != "count":
            raise SpecError(f"aggregates: {self.function} needs a column")


def _sum(column: pl.Expr) -> pl.Expr:
    return column.sum()


def _cum_sum(column: pl.Expr) -> pl.Expr:
    return column.cum_sum()


def _roll_exact(column: pl.Expr, size: int) -> pl.Expr:
    return column.cum_sum() - column.cum_sum().shift(size).fill_null(0)


def _roll_float(column: pl.Expr, size: int) -> pl.Expr:
    return column.rolling_sum(size, min_samples=1)


def additive(name: str, of_record: pl.Expr, kind: pl.DataType = _COUNT) -> Part:
    """A part that adds up."""
    roll = _roll_float if kind.is_float() else _roll_exact
    return Part(name, of_record, _sum, _cum_sum, roll, whole=kind.is_integer())


def _roll_first(column: pl.Expr, size: int) -> pl.Expr:
    """The first value that is not null among the last `size` rows."""
    number = pl.int_range(pl.len())
    next_value = column.backward_fill()
    next_number = pl.when(column.is_not_null()).then(number).backward_fill()
    value = pl.coalesce(next_value.shift(size - 1), pl.when(number < size).then(next_value.first()))
    at = pl.coalesce(next_number.shift(size - 1), pl.when(number < size).then(next_number.first()))
    return pl.when(at <= number).then(value)


def _roll_last(column: pl.Expr, size: int) -> pl.Expr:
    """The last value that is not null among the last `size` rows."""
    number = pl.int_range(pl.len())
    at = pl.when(column.is_not_null()).then(number).forward_fill()
    return pl.when(at > number - size).then(column.forward_fill())


class Parts(NamedTuple):
    """The parts of an aggregate, and how they become its value."""

    parts: list[Part]
    finish: pl.Expr


def _number(column: pl.Expr, kind: pl.DataType) -> pl.Expr:
    """The column in a type in which sums are exact where they can be."""
    if kind.is_integer():
        return column.cast(_INTEGER)
    if isinstance(kind, pl.Decimal):
        return column.cast(pl.Decimal(38, kind.scale))
    return column.cast(pl.Float64)


def _present(column: pl.Expr) -> pl.Expr:
    return column.is_not_null().cast(pl.Int64)


def _count(p: str, column: pl.Expr | None, kind: pl.DataType) -> Parts:
    of_record = pl.lit(1, dtype=pl.Int64) if column is None else _present(column)
    return Parts([additive(f"{p}n", of_record)], pl.col(f"{p}n"))


def _total(p: str, column: pl.Expr, kind: pl.DataType) -> Parts:
    total = pl.col(f"{p}s")
    if kind.is_integer():
        total = total.cast(pl.Decimal(38, 0))
    parts = [
        additive(f"{p}n", _present(column)),
        additive(f"{p}s", _number(column, kind).fill_null(0), kind),
    ]
    return Parts(parts, pl.when(pl.col(f"{p}n") > 0).then(total))


def _avg(p: str, column: pl.Expr, kind: pl.DataType) -> Parts:
    parts = [
        additive(f"{p}n", _present(column)),
        additive(f"{p}s", _number(column, kind).fill_null(0), kind),
    ]
    value = pl.col(f"{p}s").cast(pl.Float64) / pl.col(f"{p}n")
    return Parts(parts, pl.when(pl.col(f"{p}n") > 0).then(value))


Roll = Callable[[pl.Expr, int], pl.Expr]


def _rolling(kind: pl.DataType, roll: Roll) -> Roll:
    """Polars does not roll over decimals: roll over their digits."""
    if not isinstance(kind, pl.Decimal):
        return roll
    unit = pl.lit(10**kind.scale, dtype=pl.Int64).cast(pl.Decimal(38, 0))
    digits = pl.Decimal(38, kind.scale)
    return lambda c, n: (roll((c * unit).cast(pl.Int64), n).cast(digits) / unit).cast(digits)


def _least(p: str, column: pl.Expr, kind: pl.DataType) -> Parts:
    part = Part(
        f"{p}v",
        column,
        lambda c: c.min(),
        lambda c: c.cum_min().forward_fill(),
        _rolling(kind, lambda c, n: c.rolling_min(n, min_samples=1)),
    )
    return _with_nan(p, column, kind, part, only=True)


def _greatest(p: str, column: pl.Expr, kind: pl.DataType) -> Parts:
    part = Part(
        f"{p}v",
        column,
        lambda c: c.max(),
        lambda c: c.cum_max().forward_fill(),
        _rolling(kind, lambda c, n: c.rolling_max(n, min_samples=1)),
    )
    return _with_nan(p, column, kind, part, only=False)


def _with_nan(p: str, column: pl.Expr, kind: pl.DataType, part: Part, *, only: bool) -> Parts:
    """NaN is larger than every number: the greatest if there is one, the least only if it is alone."""
    if not kind.is_float():
        return Parts([part], pl.col(part.name))
    numbers = part._replace(of_record=column.fill_nan(None))
    nan = additive(f"{p}q", column.is_nan().fill_null(False).cast(pl.Int64))
    value = pl.col(part.name)
    is_nan = (pl.col(nan.name) > 0) & value.is_null() if only else pl.col(nan.name) > 0
    return Parts([numbers, nan], pl.when(is_nan).then(pl.lit(float("nan"))).otherwise(value))


def _first(p: str, column: pl.Expr, kind: pl.DataType) -> Parts:
    value = Part(
        f"{p}v",
        column,
        lambda c: c.filter(c.is_not_null()).get(
            pl.col(f"{p}p").filter(c.is_not_null()).arg_min(), null_on_oob=True
        ),
        lambda c: pl.when(pl.col(f"{p}p").cum_min().forward_fill().is_not_null()).then(
            c.get(pl.col(f"{p}p").arg_min())
        ),
        _roll_first,
    )
    position = Part(
        f"{p}p",
        pl.when(column.is_not_null()).then(pl.col("pos")),
        lambda c: c.min(),
        lambda c: c.cum_min().forward_fill(),
        _roll_first,
    )
    return Parts([value, position], pl.col(f"{p}v"))


def _last(p: str, column: pl.Expr, kind: pl.DataType) -> Parts:
    value = Part(
        f"{p}v",
        column,
        lambda c: c.filter(c.is_not_null()).get(
            pl.col(f"{p}p").filter(c.is_not_null()).arg_max(), null_on_oob=True
        ),
        lambda c: c.forward_fill(),
        _roll_last,
    )
    position = Part(
        f"{p}p",
        pl.when(column.is_not_null()).then(pl.col("pos")),
        lambda c: c.max(),
        lambda c: c.cum_max().forward_fill(),
        _roll_last,
    )
    return Parts([value, position], pl.col(f"{p}v"))


def _variance(p: str, column: pl.Expr, kind: pl.DataType) -> Parts:
    """Sums of squares where they are exact, else the mean and squared distances from it."""
    if kind.is_integer():
        number = column.cast(_INTEGER).fill_null(0)
        n, s, q = pl.col(f"{p}n").cast(_INTEGER), pl.col(f"{p}s"), pl.col(f"{p}q")
        exact = [
            additive(f"{p}n", _present(column)),
            additive(f"{p}s", number),
            additive(f"{p}q", number * number),
        ]
        value = (n * q - s * s).cast(pl.Float64) / (n * (n - 1)).cast(pl.Float64)
        return Parts(exact, pl.when(n > 1).then(value))
    return _float_variance(p, column.cast(pl.Float64))


def _float_variance(p: str, column: pl.Expr) -> Parts:
    n, mean, distance = pl.col(f"{p}n"), pl.col(f"{p}m"), pl.col(f"{p}d")
    known, so_far = n.sum() > 0, n.cum_sum()
    total_mean = (n * mean).sum() / n.sum()
    pivot = mean.filter(n > 0).first()
    shifted = (n * (mean - pivot)).cum_sum()
    squares = (distance + n * (mean - pivot) ** 2).cum_sum()
    means = Part(
        f"{p}m",
        column.fill_null(0.0),
        lambda c: pl.when(known).then(total_mean).otherwise(0.0),
        lambda c: pl.when(so_far > 0).then(pivot + shifted / so_far).otherwise(0.0),
        lambda c, size: pl.when(n > 0).then(c).rolling_mean(size, min_samples=1),
    )
    distances = Part(
        f"{p}d",
        column.fill_null(0.0) * 0.0,
        lambda c: pl.when(known).then(c.sum() + (n * (mean - total_mean) ** 2).sum()).otherwise(0.0),
        lambda c: pl.when(so_far > 0).then((squares - shifted**2 / so_far).clip(0.0)).otherwise(0.0),
        lambda c, size: (
            pl.when(n > 0).then(mean).rolling_var(size, min_samples=1, ddof=0)
            * n.rolling_sum(size, min_samples=1)
        ),
    )
    return Parts(
        [additive(f"{p}n", _present(column)), means, distances], pl.when(n > 1).then(distance / (n - 1))
    )


def _stddev(p: str, column: pl.Expr, kind: pl.DataType) -> Parts:
    parts, value = _variance(p, column, kind)
    return Parts(parts, value.sqrt())


FUNCTIONS: dict[str, Callable[..., Parts]] = {
    "count": _count,
    "sum": _total,
    "avg": _avg,
    "min": _least,
    "max": _greatest,
    "first": _first,
    "last": _last,
    "stddev": _stddev,
    "variance": _variance,
}


def parts_of(aggregate: Aggregate, number: int, kind: pl.DataType) -> Parts:
    """The parts of the aggregate at that place of a spec, over a column of that type."""
    column = pl.col(aggregate.column) if aggregate.column is not None else None
    return FUNCTIONS[aggregate.function](f"a{number}", column, kind)
