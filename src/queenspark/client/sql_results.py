"""Results of SQL statements, and the decoding of rows to Python values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import msgspec

from .errors import QueenError, SqlError

Row = dict[str, Any]
"""A row: values by column name."""


class SqlColumn(msgspec.Struct, frozen=True):
    """A column: its name and its SQL type, for instance `bigint`."""

    name: str
    type: str


class SqlResult(msgspec.Struct, kw_only=True):
    """The result of one statement, or its rows."""

    kind: str
    name: str | None = None
    version: int | None = None
    changed: bool | None = None
    #: How an existing job is replaced: `in place`, `at a boundary` or `by position`.
    how: str | None = None
    statement: str | None = None
    warnings: list[str] = []
    #: Rows pushed by an INSERT.
    count: int | None = None
    #: Objects removed by a DROP.
    dropped: list[str] = []
    #: Details from DESCRIBE, in addition to the columns.
    details: dict[str, Any] = {}
    columns: list[SqlColumn] = []
    rows: list[Row] = []


class SentResult(SqlResult, kw_only=True):
    """A result with its rows still encoded."""

    rows: list[msgspec.Raw] = []  # type: ignore[assignment]

    def read(self) -> SqlResult:
        """Return the result with decoded rows."""
        read = row_reader(self.columns)
        fields = {name: getattr(self, name) for name in SqlResult.__struct_fields__}
        return SqlResult(**fields | {"rows": [read(row) for row in self.rows]})


class SqlResponse(msgspec.Struct):
    """The response to a batch of statements."""

    results: list[SentResult]


class _Head(msgspec.Struct):
    columns: list[SqlColumn]


def columns_of(line: bytes) -> list[SqlColumn]:
    """Decode the columns from the first line of a SELECT."""
    try:
        return msgspec.json.decode(line, type=_Head).columns
    except msgspec.MsgspecError as error:
        raise failed(line) or QueenError(f"a SELECT begins with its columns, not {line!r}: {error}") from None


def row_reader(columns: Sequence[SqlColumn]) -> Callable[[bytes | msgspec.Raw], Row]:
    """Return a decoder of JSON rows: times become datetimes, decimals keep their digits."""
    names = [column.name for column in columns]
    kinds = tuple(_python_type(column.type) for column in columns)
    decoder = msgspec.json.Decoder(tuple.__class_getitem__(kinds))
    floats = [column.name for column in columns if column.type in ("float", "double")]

    def read(line: bytes | msgspec.Raw) -> Row:
        try:
            row = dict(zip(names, decoder.decode(line), strict=True))
        except msgspec.MsgspecError as error:
            raise failed(bytes(line)) or QueenError(
                f"the row {bytes(line)!r} does not fit its columns: {error}"
            ) from None
        for name in floats:
            if isinstance(row[name], str):  # "NaN" and "Infinity"
                row[name] = float(row[name])
        return row

    return read


def failed(line: bytes) -> SqlError | None:
    """Return the error in this line, if it is one."""
    try:
        said = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return None
    if not isinstance(said, dict) or "error" not in said:
        return None
    return SqlError(str(said["error"] or "the query failed"), 200, str(said.get("code") or "failed"), said)


def _python_type(name: str) -> Any:
    if name in ("float", "double"):
        return float | str | None
    if name.startswith("decimal"):
        return Decimal | None
    return {"timestamp": datetime | None, "date": date | None}.get(name, Any)
