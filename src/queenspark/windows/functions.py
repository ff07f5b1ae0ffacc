"""The aggregate functions: their parts, and the value computed from these.

Values and types are those of Spark SQL in ANSI mode. Sums of integers and decimals are exact; on overflow the
value is null, with a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

from . import parts
from .aggregates import Aggregate
from .parts import Part, Parts

_INTEGER = pl.Int128()
_UNIT = 10**18  # splits the digits of long decimals
_MOST_DIGITS = 38


class _Inputs:
    """The inputs of an aggregate, and the names of its parts."""

    def __init__(self, aggregate: Aggregate, *, rolls: bool) -> None:
        self.aggregate = aggregate
        self.rolls = rolls
        self.columns = [pl.col(name) for name in aggregate.inputs]
        self.kinds = aggregate.kinds
        self.counts = pl.lit(True) if aggregate.where is None else pl.col(aggregate.where).fill_null(False)
        where = "" if aggregate.where is None else f" where {aggregate.where}"
        rows = "" if aggregate.rows is None else f" of {aggregate.rows}"
        self._about = f"({','.join(aggregate.inputs)}){where}{rows}"

    def name(self, part: str) -> str:
        """The name of a part: its content and its inputs."""
        return part + self._about

    @property
    def present(self) -> pl.Expr:
        """Whether a record has a value."""
        return self.counts if not self.columns else self.counts & self.columns[0].is_not_null()

    @property
    def column(self) -> pl.Expr:
        """The value, null if the record is filtered out."""
        return self.counted(self.columns[0])

    def counted(self, column: pl.Expr) -> pl.Expr:
        """A column, null if the record is filtered out."""
        return column if self.aggregate.where is None else pl.when(self.counts).then(column)

    @property
    def kind(self) -> pl.DataType:
        """The type of the value."""
        return self.kinds[0]

    def number(self) -> Part:
        """The number of values."""
        return parts.whole(self.name("n"), self.present.cast(pl.Int64))


def _count(of: _Inputs) -> Parts:
    if not of.aggregate.distinct:
        number = of.number()
        return Parts([number], pl.col(number.name))
    column = parts.one_zero(of.column) if of.kind.is_float() else of.column
    if of.rolls:
        part = parts.rolling_distinct(of.name("distinct"), column)
        return Parts([part], pl.col(part.name), pl.lit(None, dtype=pl.String))
    found = parts.distinct(of.name("values"), of.name("distinct"), column, of.kind)
    return _limited(found, pl.col(found[1].name), pl.col(found[1].name))


def _limited(found: list[Part], value: pl.Expr, size: pl.Expr) -> Parts:
    """A value that needs all values of its window."""
    too_many = size > parts.MOST_VALUES
    most = f"{parts.MOST_VALUES:,}"
    reason = pl.lit(
        f"a window or group has more than {most} values; use shorter windows, more keys or another aggregate"
    )
    return Parts(found, pl.when(~too_many).then(value), pl.when(too_many).then(reason))


class _Total:
    """An exact sum: its parts, its digits, and the overflow check."""

    def __init__(self, of: _Inputs) -> None:
        if isinstance(of.kind, pl.Decimal):
            digits = of.column.to_physical()
            self.most = min(of.kind.precision + 10, _MOST_DIGITS)
            is_long = of.kind.precision + 10 > _MOST_DIGITS
        else:
            digits, self.most, is_long = of.column, 0, False
        digits = digits.cast(_INTEGER).fill_null(0)
        if not is_long:
            part = parts.whole(of.name("sum"), digits)
            self.parts, self.digits = [part], pl.col(part.name)
            limit = 10**self.most
            self.is_over = (self.digits >= _integer(limit)) | (self.digits <= _integer(-limit))
            return
        # Two sums of these digits can exceed 128 bits: add the upper and the lower halves.
        unit, limit = _integer(_UNIT), 10**_MOST_DIGITS // _UNIT
        upper = digits // unit
        self.parts = [
            parts.whole(of.name("upper"), upper),
            parts.whole(of.name("lower"), digits - upper * unit),
        ]
        high, low = (pl.col(part.name) for part in self.parts)
        carried = high + low // unit
        rest = low - low // unit * unit
        least = _integer(-limit)
        self.is_over = (carried >= _integer(limit)) | (carried < least) | ((carried == least) & (rest == 0))
        self.digits = pl.when(~self.is_over).then(carried) * unit + rest


def _integer(value: int) -> pl.Expr:
    return pl.lit(value, dtype=_INTEGER)


def _sum(of: _Inputs) -> Parts:
    number = of.number()
    some = pl.col(number.name) > 0
    if of.kind.is_float():
        part = parts.fraction(of.name("sum"), of.column.cast(pl.Float64).fill_null(0))
        return Parts([number, part], pl.when(some).then(pl.col(part.name)))
    total = _Total(of)
    if isinstance(of.kind, pl.Decimal):
        kind = pl.Decimal(total.most, of.kind.scale)
        is_over, value = total.is_over, parts.from_digits(_unless(total.is_over, total.digits), kind)
        reason = f"the sum does not fit into DECIMAL({kind.precision}, {kind.scale}); CAST to fewer digits"
    else:
        is_over = (total.digits > 2**63 - 1) | (total.digits < -(2**63))
        value = _unless(is_over, total.digits).cast(pl.Int64)
        reason = "the sum does not fit into BIGINT; CAST the values to DECIMAL(20, 0)"
    return Parts(
        [number, *total.parts], pl.when(some).then(value), pl.when(some & is_over).then(pl.lit(reason))
    )


def _unless(failed: pl.Expr, value: pl.Expr) -> pl.Expr:
    return pl.when(~failed).then(value)


def _avg(of: _Inputs) -> Parts:
    number = of.number()
    n = pl.col(number.name)
    if isinstance(of.kind, pl.Decimal):
        return _decimal_avg(of, number, of.kind)
    total: list[Part] = (
        [parts.fraction(of.name("sum"), of.column.cast(pl.Float64).fill_null(0))]
        if of.kind.is_float()
        else _Total(of).parts
    )
    return Parts([number, *total], pl.when(n > 0).then(pl.col(total[0].name).cast(pl.Float64) / n))


def _decimal_avg(of: _Inputs, number: Part, kind: pl.Decimal) -> Parts:
    """Four more digits than the values, rounded half up."""
    result = pl.Decimal(min(kind.precision + 4, _MOST_DIGITS), min(kind.scale + 4, _MOST_DIGITS))
    total = _Total(of)
    some = pl.col(number.name) > 0
    n = pl.when(some).then(pl.col(number.name)).cast(_INTEGER)
    size, more = total.digits.abs(), 10 ** (result.scale - kind.scale)
    quotient = size // n
    rest = (size - quotient * n) * _integer(more)
    too_large = total.is_over | (quotient >= _integer(10**result.precision // more))
    digits = _unless(too_large, quotient) * _integer(more) + (rest * 2 + n) // (n * 2)
    is_over = too_large | (digits >= _integer(10**result.precision))
    signed = pl.when(total.digits < 0).then(_integer(0) - digits).otherwise(digits)
    reason = f"the mean does not fit into DECIMAL({result.precision}, {result.scale}); CAST to fewer digits"
    return Parts(
        [number, *total.parts],
        pl.when(some).then(parts.from_digits(_unless(is_over, signed), result)),
        pl.when(some & is_over).then(pl.lit(reason)),
    )


def _extreme(of: _Inputs, *, largest: bool) -> Parts:
    name = of.name("max" if largest else "min")
    part = parts.extreme(name, parts.orderable(of.column, of.kind), of.kind, largest=largest)
    return Parts([part], parts.from_orderable(pl.col(name), of.kind))


def _at_end(of: _Inputs, *, last: bool) -> Parts:
    """NULL is an ordinary value, unless nulls are ignored."""
    end = ("last" if last else "first") + (" known" if of.aggregate.ignore_nulls else "")
    counts = of.present if of.aggregate.ignore_nulls else of.counts
    at = of.name(f"{end} at")
    column = pl.col(at)
    position = Part(
        at,
        pl.when(counts).then(pl.col("pos")),
        column.max() if last else column.min(),
        None,
    )
    part = parts.at_position(of.name(end), of.columns[0].cast(of.kind), at, last=last)
    return Parts([part, position], pl.col(part.name))


def _by(of: _Inputs, *, largest: bool) -> Parts:
    """The value at the largest or smallest order; ties take the last record, as Spark does."""
    function = "max by" if largest else "min by"
    order, at, value = of.name(f"{function} order"), of.name(f"{function} at"), of.name(function)
    column = pl.col(order)
    best = column.max() if largest else column.min()
    is_best = column == best
    newest = pl.col(at).filter(is_best)
    of_record = parts.orderable(of.counted(of.columns[1]), of.kinds[1])
    so_far, rolled = parts.best_row(column, largest=largest)
    return Parts(
        [
            Part(
                value,
                of.columns[0],
                pl.col(value).filter(is_best).get(newest.arg_max(), null_on_oob=True),
                pl.col(value).gather(so_far),
                lambda n: pl.col(value).gather(rolled(n)),
            ),
            Part(order, of_record, best, None),
            Part(at, pl.col("pos"), newest.max(), None),
        ],
        pl.col(value),
    )


def _variance(of: _Inputs, *, sample: bool) -> Parts:
    """Sums of squares if they are exact, else the mean and squared deviations."""
    number = of.number()
    n = pl.col(number.name)
    less = 1 if sample else 0
    if of.kind.is_integer() and of.kind != pl.Int64():
        column = of.column.cast(_INTEGER).fill_null(0)
        total, squares = parts.whole(of.name("sum"), column), parts.whole(of.name("squares"), column * column)
        count = n.cast(_INTEGER)
        distance = count * pl.col(squares.name) - pl.col(total.name) * pl.col(total.name)
        value = distance.cast(pl.Float64) / (count * (count - less)).cast(pl.Float64)
        return Parts([number, total, squares], pl.when(n > less).then(value))
    mean, distances = _moments(of, n)
    return Parts([number, mean, distances], pl.when(n > less).then(pl.col(distances.name) / (n - less)))


def _moments(of: _Inputs, n: pl.Expr) -> tuple[Part, Part]:
    """The mean, and the sum of squared deviations."""
    column = of.column.cast(pl.Float64).fill_null(0.0)
    mean, distance = pl.col(of.name("mean")), pl.col(of.name("distance"))
    known, so_far = n.sum() > 0, n.cum_sum()
    total_mean = (n * mean).sum() / n.sum()
    pivot = mean.filter(n > 0).first()
    shifted = (n * (mean - pivot)).cum_sum()
    squares = (distance + n * (mean - pivot) ** 2).cum_sum()
    values = pl.when(n > 0).then(mean)
    means = Part(
        of.name("mean"),
        column,
        pl.when(known).then(total_mean).otherwise(0.0),
        pl.when(so_far > 0).then(pivot + shifted / so_far).otherwise(0.0).over("w"),
        lambda size: values.rolling_mean(size, min_samples=1).over("w"),
    )
    distances = Part(
        of.name("distance"),
        column * 0.0,
        pl.when(known).then(distance.sum() + (n * (mean - total_mean) ** 2).sum()).otherwise(0.0),
        pl.when(so_far > 0).then((squares - shifted**2 / so_far).clip(0.0)).otherwise(0.0).over("w"),
        lambda size: (
            values.rolling_var(size, min_samples=1, ddof=0) * n.rolling_sum(size, min_samples=1)
        ).over("w"),
    )
    return means, distances


def _deviation(of: _Inputs, *, sample: bool) -> Parts:
    found, value, _ = _variance(of, sample=sample)
    return Parts(found, value.sqrt())


def _percentile(of: _Inputs) -> Parts:
    """Linear interpolation between two values."""
    share = 0.5 if of.aggregate.parameter is None else float(of.aggregate.parameter)
    part = parts.values(of.name("numbers"), of.column.cast(pl.Float64), of.present, pl.Float64())
    column = pl.col(part.name).list.sort()
    size = pl.col(part.name).list.len().cast(pl.Int64)
    rank = pl.when(size > 0).then((size - 1) * share)
    below, above = rank.floor().cast(pl.Int64), rank.ceil().cast(pl.Int64)
    low, high = column.list.get(below, null_on_oob=True), column.list.get(above, null_on_oob=True)
    value = pl.when(low.eq_missing(high)).then(low).otherwise((above - rank) * low + (rank - below) * high)
    return _limited([part], value, size)


def _collected(of: _Inputs, *, unique: bool) -> Parts:
    """Values in log order; in a set, at their first appearance."""
    kind, column = of.kind, of.column
    is_list = isinstance(kind, pl.List)
    if unique and kind.is_float():
        column = parts.one_zero(column)
    if is_list:
        column, kind = pl.struct(column.alias("list")), pl.Struct({"list": kind})
    prefix = "set" if unique else "list"
    found = parts.values(of.name(prefix), column, of.present, kind)
    positions = parts.values(of.name(f"{prefix} at"), pl.col("pos"), of.present, _INTEGER)
    column, at = pl.col(found.name), pl.col(positions.name)
    if unique:
        found, positions = parts.first_appearances(found, positions)
    ordered = column.list.gather(at.list.eval(pl.element().arg_sort()))
    if unique:
        ordered = ordered.list.unique(maintain_order=True)
    size = ordered.list.len()
    if is_list:
        ordered = ordered.list.eval(pl.element().struct.field("list"))
    return _limited([found, positions], ordered, size)


def _lag(of: _Inputs) -> Parts:
    distance = int(of.aggregate.parameter or 1)
    part = parts.lagging(of.name(f"lag {distance}"), of.columns[0].cast(of.kind), distance)
    return Parts([part], pl.col(part.name))


_MAKERS: dict[str, Callable[[_Inputs], Parts]] = {
    "count": _count,
    "sum": _sum,
    "avg": _avg,
    "min": lambda of: _extreme(of, largest=False),
    "max": lambda of: _extreme(of, largest=True),
    "first": lambda of: _at_end(of, last=False),
    "last": lambda of: _at_end(of, last=True),
    "stddev_samp": lambda of: _deviation(of, sample=True),
    "stddev_pop": lambda of: _deviation(of, sample=False),
    "var_samp": lambda of: _variance(of, sample=True),
    "var_pop": lambda of: _variance(of, sample=False),
    "min_by": lambda of: _by(of, largest=False),
    "max_by": lambda of: _by(of, largest=True),
    "median": _percentile,
    "percentile": _percentile,
    "collect_list": lambda of: _collected(of, unique=False),
    "collect_set": lambda of: _collected(of, unique=True),
    "lag": _lag,
}


def parts_of(aggregate: Aggregate, *, rolls: bool) -> Parts:
    """Return the parts of an aggregate; `rolls`: over the last records of a key, not over windows."""
    return _MAKERS[aggregate.function](_Inputs(aggregate, rolls=rolls))


def columns_of(aggregates: Sequence[Aggregate]) -> dict[str, pl.DataType]:
    """Return the input columns of aggregates."""
    return {name: kind for aggregate in aggregates for name, kind in aggregate.columns.items()}
