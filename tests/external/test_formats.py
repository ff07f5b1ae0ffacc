"""Formats of files: each line gives a record or a reason, whatever lines are read with it."""

import pytest

from queenspark.connectors.files.formats import Csv, JsonLines, Parsed
from queenspark.connectors.files.lines import lines_between
from queenspark.sql.payload import Field
from queenspark.sql.types import BIGINT, JSON, STRING, SqlType

_TEXTS = {"a": STRING, "b": STRING, "c": STRING}
Row = tuple[object, ...]


class _Bytes:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def read_at(self, size: int, offset: int) -> bytes:
        return self._data[offset : offset + size]


def _fields(columns: dict[str, SqlType]) -> list[Field]:
    return [Field((name,), kind) for name, kind in columns.items()]


def _parse(format_: Csv | JsonLines, data: bytes) -> Parsed:
    (lines,) = lines_between(_Bytes(data), 0, len(data), len(data))
    return format_.parse(lines, b"")


def _csv(data: bytes, columns: dict[str, SqlType] = _TEXTS) -> tuple[list[Row], dict[int, str]]:
    """The rows of CSV without a header, and the reasons for the others."""
    fields = _fields(columns)
    parsed = _parse(Csv(fields, list(columns), ",", header=False), data)
    assert parsed.fields.height == parsed.is_read.sum()
    return parsed.fields.select(field.column for field in fields).rows(), parsed.reasons


def test_a_json_column_of_csv_is_one_json_value() -> None:
    fields = _fields({"j": JSON})
    (field,) = fields
    parsed = _parse(Csv(fields, ["j"], ",", header=False), b'abc\n1.50\n"{""a"": [1,2]}"\nNaN\n')
    assert parsed.fields[field.column].to_list() == [None, "1.50", '{"a": [1,2]}', None]
    assert parsed.fields[field.error].to_list() == [
        "j is abc, not a JSON; it would fit STRING", None, None, "j is NaN, not a JSON; it would fit STRING",
    ]  # fmt: skip
