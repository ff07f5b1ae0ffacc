"""Aggregates of a spec: a function over input columns of given types, under a name."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import polars as pl

from .column_types import type_of
from .errors import SpecError


class Function(NamedTuple):
    """The inputs of an aggregate function, and where it may be used."""

    inputs: int = 1
    numbers: bool = False  # accepts numbers only
    compares: bool = False  # compares its last input
    final_only: bool = False
    rows_only: bool = False


FUNCTIONS: dict[str, Function] = {
    "count": Function(),
    "sum": Function(numbers=True),
    "avg": Function(numbers=True),
    "min": Function(compares=True),
    "max": Function(compares=True),
    "first": Function(),
    "last": Function(),
    "stddev_samp": Function(numbers=True),
    "stddev_pop": Function(numbers=True),
    "var_samp": Function(numbers=True),
    "var_pop": Function(numbers=True),
    "min_by": Function(inputs=2, compares=True),
    "max_by": Function(inputs=2, compares=True),
    "median": Function(numbers=True, final_only=True),
    "percentile": Function(numbers=True, final_only=True),
    "collect_list": Function(final_only=True),
    "collect_set": Function(compares=True, final_only=True),
    "lag": Function(rows_only=True),
}


class Aggregate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A function over columns of the records.

    `count` without an input counts records. `where` names a Boolean column that filters the records. `rows`
    is the number of records of a buffer shorter than the spec's. `parameter` is the fraction of a percentile,
    or the offset of `lag`.
    """

    function: str
    inputs: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    name: str
    distinct: bool = False
    ignore_nulls: bool = False
    where: str | None = None
    rows: int | None = None
    parameter: float | int | None = None

    def __post_init__(self) -> None:
        function = FUNCTIONS.get(self.function)
        if function is None:
            raise self._error(f"the function is unknown; use one of {', '.join(FUNCTIONS)}")
        least = 0 if self.function == "count" and not self.distinct else function.inputs
        if not least <= len(self.inputs) <= function.inputs:
            raise self._error(f"{len(self.inputs)} inputs were given; it needs {function.inputs}")
        if len(self.types) != len(self.inputs):
            raise self._error(f"{len(self.types)} types were given for {len(self.inputs)} inputs")
        if self.distinct and self.function != "count":
            raise self._error("distinct is only for count")
        if self.ignore_nulls and self.function not in ("first", "last"):
            raise self._error("ignore_nulls is only for first and last")
        self._check_types(function)
        self._check_parameter()

    def _check_types(self, function: Function) -> None:
        for text, kind in zip(self.types, self.kinds, strict=True):
            if function.numbers and not kind.is_numeric():
                raise self._error(f"expected a number, found {text}")
        if (function.compares or self.distinct) and isinstance(self.kinds[-1], pl.List):
            raise self._error(f"{self.types[-1]} cannot be compared")

    def _check_parameter(self) -> None:
        given = self.parameter
        if self.function == "percentile":
            if given is None or not 0 <= given <= 1:
                raise self._error(f"the parameter is {given}; it must be from 0 to 1")
        elif self.function == "lag":
            if not isinstance(given, int) or given < 1:
                raise self._error(f"the parameter is {given}; it must be a whole number from 1")
            if self.where is not None:
                raise self._error("where does not apply; remove it")
        elif given is not None:
            raise self._error("parameter does not apply; remove it")

    def _error(self, problem: str) -> SpecError:
        return SpecError(f"aggregates: {self.function} as {self.name!r}: {problem}")

    @property
    def kinds(self) -> tuple[pl.DataType, ...]:
        """The types of the inputs; an all-null column counts as numbers."""
        found = (type_of(text) for text in self.types)
        return tuple(pl.Float64() if kind == pl.Null() else kind for kind in found)

    @property
    def columns(self) -> dict[str, pl.DataType]:
        """The columns of the records that it reads."""
        conditions = {} if self.where is None else {self.where: pl.Boolean()}
        return dict(zip(self.inputs, self.kinds, strict=True)) | conditions

    @property
    def error(self) -> str | None:
        """The column with the reason for a missing value; None if there always is one."""
        exact = self.function in ("sum", "avg") and not self.kinds[0].is_float()
        exact = exact and (self.function == "sum" or isinstance(self.kinds[0], pl.Decimal))
        limited = self.distinct or FUNCTIONS[self.function].final_only
        return f"{self.name}!" if exact or limited else None
