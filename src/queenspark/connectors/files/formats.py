"""Parsers for text formats. A line that cannot be parsed is a dead record with a reason."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from ...sql.payload import Field
from ..fields import ColumnFields, JsonFields
from .lines import Lines

_SHOWN = 80
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
        return Parsed(fields.filter(pl.Series(right)), is_read, reasons)


class Csv:
    """Delimited values, quoted where necessary; without line breaks inside quotes."""

    def __init__(
        self, fields: Sequence[Field], columns: Sequence[str], delimiter: str, *, header: bool
    ) -> None:
        self._fields = ColumnFields(fields)
        self._columns = list(columns)
        self._delimiter = delimiter
        self._header = header

    def header_end(self, first: bytes) -> int:
        """Return the length of the first line if it is a header."""
        return len(first) if self._header else 0

    def parse(self, lines: Lines, first: bytes) -> Parsed:
        """Parse lines. Columns are matched by header name, or by position without a header."""
        names = self._names(first)
        is_read, reasons = _not_blank(lines), {}
        for number in self._suspicious(lines, len(names), is_read):
            count = len(self._row(lines.line(number)))
            if count != len(names):
                is_read[number] = False
                reasons[number] = f"{count} values, not {len(names)}: {lines.line(number)[:_SHOWN]}"
        kept = lines if is_read.all() else lines.only(is_read)
        return Parsed(self._fields.columns(self._table(kept, names)), is_read, reasons)

    def _table(self, lines: Lines, names: list[str]) -> pl.DataFrame:
        if not lines.height:
            return pl.DataFrame(schema=dict.fromkeys(names, pl.String))
        wanted = [name for name in self._fields.names if name in names] or names[:1]
        try:
            table = pl.read_csv(
                lines.data, has_header=False, separator=self._delimiter, encoding="utf8-lossy",
                schema=dict.fromkeys(names, pl.String), columns=[names.index(name) for name in wanted],
            )  # fmt: skip
            if table.height == lines.height:
                return table
        except pl.exceptions.PolarsError:
            pass
        # Quotes inside values: parse line by line.
        rows = [self._row(lines.line(number)) for number in range(lines.height)]
        columns = dict(zip(names, zip(*rows, strict=True), strict=True))
        return pl.DataFrame(
            {name: [value or None for value in columns[name]] for name in wanted},
            schema=dict.fromkeys(wanted, pl.String),
        )

    def _suspicious(self, lines: Lines, columns: int, is_read: Flags) -> list[int]:
        """Return the lines with an unexpected number of delimiters; some of these may be quoted."""
        data = np.frombuffer(lines.data, dtype=np.uint8)
        marks = np.flatnonzero(data == ord(self._delimiter))
        counts = np.diff(np.searchsorted(marks, lines.starts))
        return np.flatnonzero((counts != columns - 1) & is_read).tolist()

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
        return next(csv.reader([line], delimiter=self._delimiter), [])


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


def _not_blank(lines: Lines) -> Flags:
    """Return a mask of the lines that are not blank."""
    sizes = np.diff(lines.starts)
    found: Flags = sizes > 2
    for number in np.flatnonzero(sizes <= 2).tolist():
        found[number] = bool(lines.line(number).strip())
    return found
