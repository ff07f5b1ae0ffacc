"""Parts of aggregates: columns that can be computed from records, merged, accumulated and rolled.

Parts are named by their content, so aggregates share them and their order in a spec is irrelevant.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import NamedTuple

import polars as pl

from .runs import rolling_sum, running_sum

#: Limit on the values that a window keeps for an aggregate that needs all of them.
MOST_VALUES = 100_000
_ROW = pl.col("row")
_ROW_NUMBERS = 2**32  # row numbers per order value, when both are packed into one number
_SIGN = 2**63 - 1


class Part(NamedTuple):
    """One column of an aggregate, as expressions over columns of that name."""

    name: str
    of_record: pl.Expr
    merge: pl.Expr  # within a group of rows in any order
    accumulate: pl.Expr | None  # over rows in runs: each with all before it; None if unused
    roll: Callable[[int], pl.Expr] | None = None  # over records in runs: the last n, from `low_n` on


class Parts(NamedTuple):
    """The parts of an aggregate, its value, and the reason for a missing value."""

    parts: list[Part]
    value: pl.Expr
    error: pl.Expr | None = None


def low_row(size: int) -> str:
    """The column with the first row of the last `size` records."""
    return f"low_{size}"


# Sums


def whole(name: str, of_record: pl.Expr) -> Part:
    """A sum of integers."""
    column = pl.col(name)
    return Part(
        name, of_record, column.sum(), running_sum(column), lambda n: rolling_sum(column, pl.col(low_row(n)))
    )


def fraction(name: str, of_record: pl.Expr) -> Part:
    """A sum of floats."""
    column = pl.col(name)
    return Part(
        name,
        of_record,
        column.sum(),
        column.cum_sum().over("w"),
        lambda n: column.rolling_sum(n, min_samples=1).over("w"),
    )


# Order


def one_zero(column: pl.Expr) -> pl.Expr:
    """Map -0.0 to 0.0."""
    # Adding 0.0 would do it for a literal, but polars leaves columns unchanged then.
    return pl.when(column == 0).then(column.abs()).otherwise(column)


def orderable(column: pl.Expr, kind: pl.DataType) -> pl.Expr:
    """Map values to numbers in the same order, NaN above all; texts stay unchanged."""
    if kind.is_float():
        bits = one_zero(column.cast(pl.Float64).fill_nan(float("nan"))).reinterpret(dtype=pl.Int64)
        return _flipped(bits)
    if isinstance(kind, pl.Decimal):
        return column.to_physical()
    if kind == pl.Boolean() or kind.is_integer():
        return column.cast(pl.Int64)
    return column.to_physical().cast(pl.Int64) if kind.is_temporal() else column


def from_orderable(column: pl.Expr, kind: pl.DataType) -> pl.Expr:
    """Map back to values."""
    if kind.is_float():
        return _flipped(column).reinterpret(dtype=pl.Float64).cast(kind)
    if isinstance(kind, pl.Decimal):
        return from_digits(column, kind)
    if kind == pl.Boolean():
        return column == 1
    return column.cast(kind)


def _flipped(bits: pl.Expr) -> pl.Expr:
    """Map the bits of a float to an order-preserving integer, and back."""
    return pl.when(bits < 0).then(bits.xor(pl.lit(_SIGN, dtype=pl.Int64))).otherwise(bits)


def is_number(kind: pl.DataType) -> bool:
    """Whether its orderable form is a 64-bit number."""
    return not (kind == pl.String() or isinstance(kind, pl.Decimal))


def best_row(order: pl.Expr, *, largest: bool) -> tuple[pl.Expr, Callable[[int], pl.Expr]]:
    """The row of the largest or smallest value so far in a run, and among the last n; ties take the last."""
    rank = order.rank("dense").cast(pl.Int64)
    key = (rank if largest else -rank) * _ROW_NUMBERS + _ROW
    return (
        key.cum_max().forward_fill().over("w") % _ROW_NUMBERS,
        lambda n: key.rolling_max(n, min_samples=1).over("w") % _ROW_NUMBERS,
    )


def extreme(name: str, of_record: pl.Expr, kind: pl.DataType, *, largest: bool) -> Part:
    """The largest or smallest value, in its orderable form."""
    column = pl.col(name)
    merge = column.max() if largest else column.min()
    if is_number(kind):
        running = (column.cum_max() if largest else column.cum_min()).forward_fill().over("w")
        roll = column.rolling_max if largest else column.rolling_min
        return Part(name, of_record, merge, running, lambda n: roll(n, min_samples=1).over("w"))
    so_far, rolled = best_row(column, largest=largest)
    return Part(name, of_record, merge, column.gather(so_far), lambda n: column.gather(rolled(n)))


# Positions


def at_position(name: str, of_record: pl.Expr, position: str, *, last: bool) -> Part:
    """The value at the first or last non-null position; `position` is a separate part."""
    column, at = pl.col(name), pl.col(position)
    known = at.drop_nulls()
    merge = column.filter(at.is_not_null()).get(
        known.arg_max() if last else known.arg_min(), null_on_oob=True
    )
    return Part(
        name,
        of_record,
        merge,
        column.gather(_known_row(at, pl.col("first_row"), last=last)),
        lambda n: column.gather(_known_row(at, pl.col(low_row(n)), last=last)),
    )


def _known_row(position: pl.Expr, low: pl.Expr, *, last: bool) -> pl.Expr:
    """The first or last row from `low` on with a position."""
    rows = pl.when(position.is_not_null()).then(_ROW)
    if last:
        found = rows.forward_fill()
        return pl.when(found >= low).then(found)
    found = rows.backward_fill().gather(low)
    return pl.when(found <= _ROW).then(found)


# Lists


def values(name: str, of_record: pl.Expr, present: pl.Expr, kind: pl.DataType) -> Part:
    """All present values. An overlong list is cut to one more than the limit."""
    column = pl.col(name)
    one = _as_list(of_record, present, kind)
    return Part(name, one, _flat(column).head(MOST_VALUES + 1), _running_list(column))


def first_appearances(values: Part, positions: Part) -> tuple[Part, Part]:
    """Each value once, at its first appearance."""
    at = _flat(pl.col(positions.name))
    in_order = _flat(pl.col(values.name)).sort_by(at)
    return (
        values._replace(merge=in_order.unique(maintain_order=True).head(MOST_VALUES + 1)),
        positions._replace(merge=at.sort().filter(in_order.is_first_distinct()).head(MOST_VALUES + 1)),
    )


def _as_list(column: pl.Expr, present: pl.Expr, kind: pl.DataType) -> pl.Expr:
    none = pl.lit([], dtype=pl.List(kind))
    return pl.when(present).then(pl.concat_list(column)).otherwise(none)


def _flat(column: pl.Expr) -> pl.Expr:
    return column.explode(empty_as_null=False).drop_nulls()


def _running_list(column: pl.Expr) -> pl.Expr:
    so_far = running_sum(column.list.len().cast(pl.Int64).fill_null(0))
    return _flat(column).implode().over("w").list.head(so_far)


def distinct(name: str, count: str, of_record: pl.Expr, kind: pl.DataType) -> list[Part]:
    """The distinct non-null values, and their number."""
    column = pl.col(name)
    one = _as_list(of_record, of_record.is_not_null(), kind)
    different = _flat(column).unique(maintain_order=True).head(MOST_VALUES + 1)
    return [
        Part(name, one, different, None),
        Part(count, one.list.len().cast(pl.Int64), different.len().cast(pl.Int64), _running_distinct(column)),
    ]


def _running_distinct(column: pl.Expr) -> pl.Expr:
    """The number of distinct values so far in a run; a row is new to it once."""
    size = column.list.len().cast(pl.Int64).fill_null(0)
    run = pl.col("w").repeat_by(size).explode().drop_nulls()
    is_new = pl.struct(run.alias("w"), _flat(column).alias("x")).is_first_distinct()
    end = size.cum_sum()
    total = is_new.cum_sum().cast(pl.Int64).gather(pl.when(end > 0).then(end - 1)).fill_null(0)
    return total - total.shift(1).fill_null(0).gather(pl.col("first_row"))


def rolling_distinct(name: str, of_record: pl.Expr) -> Part:
    """The number of distinct values in the last records; each counts until its next occurrence."""
    column = pl.col(name)

    def roll(size: int) -> pl.Expr:
        again = _ROW.shift(-1).over("w", name)
        end = pl.min_horizontal(again, _ROW + size, pl.col("first_row") + pl.len().over("w"))
        gone = end.filter(column.is_not_null()).sort().search_sorted(_ROW, side="right")
        return column.is_not_null().cast(pl.Int64).cum_sum() - gone.cast(pl.Int64)

    return Part(name, of_record, column.first(), None, roll)


def lagging(name: str, of_record: pl.Expr, distance: int) -> Part:
    """The value of an earlier record."""
    column = pl.col(name)

    def roll(size: int) -> pl.Expr:
        before = _ROW - distance
        return column.gather(pl.when(before >= pl.col(low_row(size))).then(before))

    return Part(name, of_record, column.first(), None, roll)


# Decimals


def from_digits(number: pl.Expr, kind: pl.Decimal) -> pl.Expr:
    """Convert digits back to a decimal."""
    return (number.cast(pl.Decimal(38, 0)) * pl.lit(Decimal(1).scaleb(-kind.scale))).cast(kind)
