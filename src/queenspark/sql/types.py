"""SQL types: names, polars columns, and Spark's type coercion (ANSI mode)."""

from __future__ import annotations

import msgspec
import polars as pl

from .tree import TypeName

#: Maximum precision of a DECIMAL.
MOST_DIGITS = 38
_INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 20}
_COLUMNS: dict[str, pl.DataType] = {
    "NULL": pl.Null(),
    "BOOLEAN": pl.Boolean(),
    "TINYINT": pl.Int8(),
    "SMALLINT": pl.Int16(),
    "INT": pl.Int32(),
    "BIGINT": pl.Int64(),
    "FLOAT": pl.Float32(),
    "DOUBLE": pl.Float64(),
    "STRING": pl.String(),
    "JSON": pl.String(),
    "DATE": pl.Date(),
    "TIMESTAMP": pl.Datetime("us", "UTC"),
    "INTERVAL": pl.Duration("us"),
}


class SqlType(msgspec.Struct, frozen=True):
    """The type of an expression or column."""

    name: str
    precision: int = 0
    scale: int = 0
    element: SqlType | None = None

    def __str__(self) -> str:
        if self.name == "DECIMAL":
            return f"DECIMAL({self.precision}, {self.scale})"
        return f"ARRAY<{self.element}>" if self.element is not None else self.name

    @property
    def column(self) -> pl.DataType:
        """The polars type that holds it."""
        if self.name == "DECIMAL":
            return pl.Decimal(self.precision, self.scale)
        if self.element is not None:
            return pl.List(self.element.column)
        return _COLUMNS[self.name]

    @property
    def is_integer(self) -> bool:
        """Whether it is an integer."""
        return self.name in _INTEGERS

    @property
    def is_float(self) -> bool:
        """Whether it is FLOAT or DOUBLE."""
        return self.name in ("FLOAT", "DOUBLE")

    @property
    def is_decimal(self) -> bool:
        """Whether it is a DECIMAL."""
        return self.name == "DECIMAL"

    @property
    def is_numeric(self) -> bool:
        """Whether it is a number."""
        return self.is_integer or self.is_float or self.is_decimal

    @property
    def is_text(self) -> bool:
        """Whether it is a string; JSON counts as one."""
        return self.name in ("STRING", "JSON")

    @property
    def bits(self) -> int:
        """The size of an integer."""
        return 8 << _INTEGERS.index(self.name)

    @property
    def least(self) -> int:
        """The smallest integer."""
        return -(1 << (self.bits - 1))

    @property
    def most(self) -> int:
        """The largest integer."""
        return (1 << (self.bits - 1)) - 1


NULL = SqlType("NULL")
BOOLEAN = SqlType("BOOLEAN")
TINYINT, SMALLINT, INT, BIGINT = (SqlType(name) for name in _INTEGERS)
FLOAT = SqlType("FLOAT")
DOUBLE = SqlType("DOUBLE")
STRING = SqlType("STRING")
JSON = SqlType("JSON")
DATE = SqlType("DATE")
TIMESTAMP = SqlType("TIMESTAMP")
INTERVAL = SqlType("INTERVAL")
ARRAY_OF_STRINGS = SqlType("ARRAY", element=STRING)


def decimal(precision: int, scale: int) -> SqlType:
    """A DECIMAL."""
    return SqlType("DECIMAL", precision, scale)


def array(element: SqlType) -> SqlType:
    """An ARRAY."""
    return SqlType("ARRAY", element=element)


def from_name(name: TypeName) -> SqlType:
    """Convert a parsed type name."""
    if name.element is not None:
        return array(from_name(name.element))
    return decimal(*name.numbers) if name.name == "DECIMAL" else SqlType(name.name)


def as_decimal(kind: SqlType) -> SqlType:
    """The DECIMAL that holds every value of an integer type."""
    return decimal(_DIGITS[kind.name], 0) if kind.is_integer else kind


def common(one: SqlType, other: SqlType) -> SqlType | None:
    """Return the common type for comparing or mixing both, if there is one."""
    if one == other or other == NULL:
        return one
    if one == NULL:
        return other
    if one.is_text and other.is_text:
        return STRING
    if one.is_integer and other.is_integer:
        return one if one.bits > other.bits else other
    if one.is_numeric and other.is_numeric:
        return DOUBLE if one.is_float or other.is_float else _wider(as_decimal(one), as_decimal(other))
    if {one.name, other.name} == {"DATE", "TIMESTAMP"}:
        return TIMESTAMP
    return None


def _wider(one: SqlType, other: SqlType) -> SqlType | None:
    scale = max(one.scale, other.scale)
    precision = scale + max(one.precision - one.scale, other.precision - other.scale)
    return decimal(precision, scale) if precision <= MOST_DIGITS else None
