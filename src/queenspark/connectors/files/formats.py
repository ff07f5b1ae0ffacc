"""Parsers for text formats. A line that cannot be parsed is a dead record with a reason."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from ...sql.payload import Field
from ..fields import ColumnFields, JsonFields
from .lines import Lines

_SHOWN = 80
_QUOTE = 34
Flags = npt.NDArray[np.bool_]


class Parsed(NamedTuple):
    """The fields of the parsed lines, a mask of these lines, and the reasons for the others."""

    fields: pl.DataFrame
    is_read: Flags
    #: By line number, for lines that are neither parsed nor blank.
    reasons: dict[int, str]


class TextFormat(Protocol):
    """A line-based format."""

    def header_end(self, first: bytes) -> int:
        """Return the size of the header in bytes; `first` is the first line of the file."""

    def parse(self, lines: Lines, first: bytes) -> Parsed:
        """Parse lines."""


class JsonLines:
    """JSON lines: one object per line."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self._fields = JsonFields(fields)

    def header_end(self, first: bytes) -> int:
        """Return 0: there is no header."""
        return 0

    def parse(self, lines: Lines, first: bytes) -> Parsed:
        """Parse lines."""
        is_read = _not_blank(lines)
        texts = lines.texts()
        fields, wrong = self._fields.columns(texts if is_read.all() else texts.filter(pl.Series(is_read)))
        if not wrong:
            return Parsed(fields, is_read, {})
        numbers = np.flatnonzero(is_read)
        reasons = {int(numbers[number]): reason for number, reason in wrong.items()}
        is_read[list(reasons)] = False
        right = np.ones(len(numbers), dtype=bool)
        right[list(wrong)] = False
        return Parsed(fields.filter(pl.Series(right)) if fields.width else fields, is_read, reasons)


class Csv:
    """Delimited values, quoted where necessary; without line breaks inside quotes."""

    def __init__(
        self, fields: Sequence[Field], columns: Sequence[str], delimiter: str, *, header: bool
    ) -> None:
        self._fields = ColumnFields(fields)
        self._columns = list(columns)
        self._delimiter = delimiter
        self._header = header
        mark = f"\\x{ord(delimiter):02x}"  # in the syntax of both Python and Rust
        quoted = '[^"]*(?:""[^"]*)*'
        value = f'(?:[^"{mark}]*|"{quoted}")'
        self._regular = rf"\A{value}(?:{mark}{value})*\r?\n?\z"
        self._value = re.compile(rf'(?:"({quoted})(?:"|\Z))?([^{mark}]*)({mark}?)')

    def header_end(self, first: bytes) -> int:
        """Return the length of the first line if it is a header."""
        return len(first) if self._header else 0

    def parse(self, lines: Lines, first: bytes) -> Parsed:
        """Parse lines. Columns are matched by header name, or by position without a header."""
        names = self._names(first)
        counts, irregular = self._counts(lines)
        is_read = _not_blank(lines)
        reasons = {
            number: f"{counts[number]} values, not {len(names)}: {lines.line(number)[:_SHOWN]}"
            for number in np.flatnonzero(is_read & (counts != len(names))).tolist()
        }
        is_read[list(reasons)] = False
        irregular = {number: row for number, row in irregular.items() if is_read[number]}
        regular = is_read.copy()
        regular[list(irregular)] = False
        wanted = [name for name in self._fields.names if name in names] or names[:1]
        table = self._table(lines if regular.all() else lines.only(regular), names, wanted)
        if irregular:
            numbers = np.concatenate([np.flatnonzero(regular), list(irregular)])
            others = _frame(list(irregular.values()), names, wanted)
            table = pl.concat([table, others])[np.argsort(numbers)]
        return Parsed(self._fields.columns(table), is_read, reasons)

    def _table(self, lines: Lines, names: list[str], wanted: list[str]) -> pl.DataFrame:
        """Return the columns of regular lines. Empty values are NULL, quoted or not, as in Spark."""
        if not lines.height:
            return _frame([], names, wanted)
        try:
            table = pl.read_csv(
                lines.data, has_header=False, separator=self._delimiter, encoding="utf8-lossy",
                quote_char='"' if self._has_quoted(lines) else None,
                schema=dict.fromkeys(names, pl.String), columns=[names.index(name) for name in wanted],
            )  # fmt: skip
            if table.height == lines.height:
                return table.select(_not_empty(name) for name in wanted)
        except pl.exceptions.PolarsError:
            pass
        return _frame([self._row(lines.line(number)) for number in range(lines.height)], names, wanted)

    def _counts(self, lines: Lines) -> tuple[npt.NDArray[np.int64], dict[int, list[str]]]:
        """Return the number of values of each line, and the values of lines with irregular quotes."""
        data = np.frombuffer(lines.data, dtype=np.uint8)
        marks = np.flatnonzero(data == ord(self._delimiter))
        if not self._has_quoted(lines):
            return np.diff(np.searchsorted(marks, lines.starts)) + 1, {}
        quotes = np.flatnonzero(data == _QUOTE)
        earlier = np.searchsorted(quotes, lines.starts)
        has_quotes = np.diff(earlier) > 0
        # A delimiter after an odd number of quotes is part of a value.
        before = earlier[np.searchsorted(lines.starts, marks, side="right") - 1]
        marks = marks[(np.searchsorted(quotes, marks) - before) % 2 == 0]
        counts = np.diff(np.searchsorted(marks, lines.starts)) + 1
        regular = lines.only(has_quotes).texts().str.contains(self._regular).to_numpy()
        numbers = np.flatnonzero(has_quotes)[~regular].tolist()
        irregular = {number: self._row(lines.line(number)) for number in numbers}
        counts[numbers] = [len(row) for row in irregular.values()]
        return counts, irregular

    def _has_quoted(self, lines: Lines) -> bool:
        """Whether a value starts with a quote. Other quotes are literal."""
        data = lines.data
        return data.startswith(b'"') or b'\n"' in data or f'{self._delimiter}"'.encode() in data

    def _names(self, first: bytes) -> list[str]:
        if not self._header:
            return self._columns
        found = self._row(first.rstrip(b"\r\n").decode("utf-8-sig", errors="replace"))
        declared = {name.lower(): name for name in self._columns}
        names = [declared.get(name.strip().lower(), name) for name in found]
        return [
            name if names.index(name) == number else f"{name}_{number}" for number, name in enumerate(names)
        ]

    def _row(self, line: str) -> list[str]:
        """Return the values of a line; quotes are literal within a value that does not start with one."""
        if not line.startswith('"') and f'{self._delimiter}"' not in line:
            return line.split(self._delimiter) if line else []
        row: list[str] = []
        at, more = 0, True
        while more:
            found = self._value.match(line, at)
            assert found is not None
            quoted, plain, mark = found.groups(default="")
            row.append(quoted.replace('""', '"') + plain)
            at, more = found.end(), bool(mark)
        return row


class Text:
    """Plain text: the line is the column `value`."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self._fields = ColumnFields(fields)

    def header_end(self, first: bytes) -> int:
        """Return 0: there is no header."""
        return 0

    def parse(self, lines: Lines, first: bytes) -> Parsed:
        """Return all lines, including blank ones."""
        values = lines.texts().str.strip_chars_end("\r\n").alias("value")
        return Parsed(self._fields.columns(values.to_frame()), np.ones(lines.height, dtype=bool), {})


def _frame(rows: list[list[str]], names: list[str], wanted: list[str]) -> pl.DataFrame:
    columns = [names.index(name) for name in wanted]
    values = {name: [row[number] for row in rows] for name, number in zip(wanted, columns, strict=True)}
    return pl.DataFrame(values, schema=dict.fromkeys(wanted, pl.String)).select(map(_not_empty, wanted))


def _not_empty(name: str) -> pl.Expr:
    return pl.when(pl.col(name) != "").then(pl.col(name)).alias(name)


def _not_blank(lines: Lines) -> Flags:
    """Return a mask of the lines that are not blank."""
    sizes = np.diff(lines.starts)
    found: Flags = sizes > 2
    for number in np.flatnonzero(sizes <= 2).tolist():
        found[number] = bool(lines.line(number).strip())
    return found
