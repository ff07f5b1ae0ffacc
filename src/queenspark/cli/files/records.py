"""Records of a file: the payload of each message, and its position in the file."""

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from queenspark.cli.exits import Exit, Failure
from queenspark.cli.files.lines import LONGEST, Lines

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?")
_TOO_LONG = f"the line is longer than {LONGEST:,} bytes"
_WORDS = {"": b"null", "true": b"true", "false": b"false"}


@dataclass(slots=True)
class Record:
    """A payload as JSON text, and its fields if it is an object; it begins at a line and an offset."""

    line: int
    offset: int
    payload: msgspec.Raw
    fields: Any = None


@dataclass(slots=True)
class BadRecord:
    """A part of a file that is not a record."""

    line: int
    offset: int
    reason: str


Records = Iterator[Record | BadRecord]
Reader = Callable[[Lines], Records]


def json_lines(lines: Lines) -> Records:
    """A record for each line of JSON; empty lines are skipped."""
    return _by_line(lines, _json)


def text_lines(lines: Lines) -> Records:
    """A record for each line: a JSON string."""
    return _by_line(lines, _text)


def _by_line(lines: Lines, parse: Callable[[int, int, bytes], Record | BadRecord | None]) -> Records:
    """Yield the parsed record of each line; `parse` takes its number, offset and text."""
    start = lines.offset
    for line in lines:
        number, offset, start = lines.number, start, lines.offset
        found = BadRecord(number, offset, _TOO_LONG) if line is None else parse(number, offset, line)
        if found is not None:
            yield found


def _json(number: int, offset: int, line: bytes) -> Record | BadRecord | None:
    raw = line.strip()
    if number == 1:
        raw = raw.removeprefix(b"\xef\xbb\xbf")
    if not raw:
        return None
    try:
        # The text stays as it was given, so that no number loses digits.
        return Record(number, offset, msgspec.Raw(raw), msgspec.json.decode(raw))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return BadRecord(number, offset, f"not valid JSON ({error})")


def _text(number: int, offset: int, line: bytes) -> Record | BadRecord:
    try:
        return Record(number, offset, msgspec.Raw(msgspec.json.encode(line.rstrip(b"\r\n").decode())))
    except UnicodeDecodeError:
        return BadRecord(number, offset, "not valid UTF-8")


class CsvRows:
    """A record for each row after the header: an object with a field for each column.

    Numbers, `true` and `false` are JSON's own unless `strings`, and nothing between two commas is null.
    """

    def __init__(self, *, delimiter: str = ",", strings: bool = False, header: Sequence[str] = ()) -> None:
        self._delimiter = delimiter
        self._strings = strings
        #: The names of the columns, known after the first row was asked for.
        self.header = list(header)

    def __call__(self, lines: Lines) -> Records:
        """The records of a file."""
        csv.field_size_limit(LONGEST)
        text = _Text(lines)
        rows = csv.reader(text, delimiter=self._delimiter, strict=True)
        while True:
            number, offset = lines.number + 1, lines.offset
            try:
                row = next(rows, None)
            except (csv.Error, _Unreadable) as error:
                yield BadRecord(number, offset, f"not valid CSV ({error})")
                rows = csv.reader(text, delimiter=self._delimiter, strict=True)
                continue
            if row is None:
                return
            if not row:
                continue
            if not self.header:
                self.header = _checked_header(row)
            elif len(row) != len(self.header):
                reason = f"{len(row)} values, but the header has {len(self.header)} columns"
                yield BadRecord(number, offset, reason)
            else:
                yield Record(number, offset, self._payload(row), dict(zip(self.header, row, strict=True)))

    def _payload(self, row: list[str]) -> msgspec.Raw:
        written = (
            msgspec.json.encode(name) + b":" + self._value(value)
            for name, value in zip(self.header, row, strict=True)
        )
        return msgspec.Raw(b"{" + b",".join(written) + b"}")

    def _value(self, text: str) -> bytes:
        if not self._strings:
            if (word := _WORDS.get(text)) is not None:
                return word
            if _NUMBER.fullmatch(text):
                return text.encode()
        return msgspec.json.encode(text)


class _Unreadable(Exception):
    """A line that is too long or not valid UTF-8."""


class _Text:
    """The lines as text, one by one as the CSV reader asks for them."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._iterator = iter(lines)

    def __iter__(self) -> "_Text":
        return self

    def __next__(self) -> str:
        line = next(self._iterator)
        if line is None:
            raise _Unreadable(_TOO_LONG)
        try:
            return line.decode("utf-8-sig" if self._lines.number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise _Unreadable("it is not valid UTF-8") from None


def _checked_header(row: list[str]) -> list[str]:
    twice = {name for name in row if row.count(name) > 1}
    if twice:
        raise Failure(
            f"The header contains {sorted(twice)[0]!r} twice: rename one of the columns.", Exit.USAGE
        )
    return row


def field(record: Record, path: str) -> str:
    """A field of a record as text; a dot in the path goes one level deeper. ValueError has the reason."""
    value = record.fields
    if isinstance(value, dict) and path in value:
        value = value[path]
    else:
        for step in path.split("."):
            value = value.get(step) if isinstance(value, dict) else None
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return msgspec.json.encode(value).decode()
    raise ValueError(
        f"field {path} is missing" if value is None else f"field {path} must be a string or a number"
    )
