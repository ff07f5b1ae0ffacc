"""Formats of files: each line gives a record or a reason, independently of the lines read with it."""

import csv

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queenspark.connectors.files.formats import Csv, JsonLines, Parsed
from queenspark.connectors.files.lines import lines_between
from queenspark.sql.payload import Field
from queenspark.sql.types import JSON, STRING, SqlType

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


def test_a_bad_json_line_is_dead_even_if_no_column_is_read() -> None:
    parsed = _parse(JsonLines([]), b'{"a":1}\n{bad\n\n{"a":2}\n')
    assert parsed.is_read.tolist() == [True, False, False, True]
    assert list(parsed.reasons) == [1]
    assert parsed.reasons[1].startswith("not a JSON object")


_LONG = b"x" * 200_000


@pytest.mark.parametrize(
    ("line", "count"),
    [
        (b'"x,y",z', 2),
        (b'"x,y",z,1,"a,b"', 4),
        (b"x\ry,z", 2),
        (b'"x\ry",z', 2),
        (b'x\r"y,z', 2),
        (b'"' + _LONG + b',y",z', 2),
        (b'x"' + _LONG + b',y",z,1', 4),
        (b'"a"x,b', 2),
    ],
)
@pytest.mark.parametrize("other", [b"4,5,6", b'4,5,"6', b'"4","5","6"'])
def test_a_bad_csv_line_is_one_dead_record(line: bytes, count: int, other: bytes) -> None:
    rows, reasons = _csv(b"1,2,3\n" + line + b"\n" + other + b"\n")
    assert rows == [("1", "2", "3"), ("4", "5", "6")]
    assert list(reasons) == [1]
    assert reasons[1].startswith(f"{count} values, not 3: ") or "field larger than field limit" in reasons[1]
    assert len(reasons[1]) < 200


@pytest.mark.parametrize(
    ("line", "row"),
    [
        (b'"",,z', (None, None, "z")),
        (b'"","","z"\r', (None, None, "z")),
        (b'"""",2,"a ""b"""', ('"', "2", 'a "b"')),
        (b'a"b,"c,d",e', ('a"b', "c,d", "e")),
        (b'"a"b,c,d', ("ab", "c", "d")),
        (b'a"b,"c,d",e"', ('a"b', "c,d", 'e"')),
        (b'a, "b",c', ("a", ' "b"', "c")),
        (b'"a"b,"c""d,e",f', ("ab", 'c"d,e', "f")),
        (b"x\ry,z,w", ("x\ry", "z", "w")),
        (b'"' + _LONG + b'",,""', (_LONG.decode(), None, None)),
        (b'\xff,"\xff",z', ("\ufffd", "\ufffd", "z")),
    ],
)
@pytest.mark.parametrize("other", [b"1,2,3", b'1,2,"3', b'1,"2","3"', b'"1","2",3\r'])
@pytest.mark.parametrize("wanted", [["a", "b", "c"], ["c", "b"]])
def test_the_values_of_a_csv_line_do_not_depend_on_its_neighbours(
    line: bytes, row: Row, other: bytes, wanted: list[str]
) -> None:
    fields = _fields(dict.fromkeys(wanted, STRING))
    expected = [tuple(values["abc".index(name)] for name in wanted) for values in (row, ("1", "2", "3"))]
    for data, rows in (
        (line + b"\n" + other + b"\n", expected),
        (other + b"\n" + line, expected[::-1]),
        (line + b"\n", expected[:1]),
    ):
        parsed = _parse(Csv(fields, ["a", "b", "c"], ",", header=False), data)
        assert parsed.reasons == {}
        assert parsed.fields.select(field.column for field in fields).rows() == rows


def test_csv_lines_are_counted_even_if_no_column_is_read() -> None:
    parsed = _parse(Csv([], ["a", "b"], ",", header=False), b'1,2\n"1,2"\n"\n3,"4\n')
    assert parsed.is_read.tolist() == [True, False, False, True]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.text('"",,a é', min_size=1, max_size=12), min_size=1, max_size=6),
    st.sampled_from(",\t;|^ ]\\"),
)
def test_csv_lines_are_parsed_as_by_python(texts: list[str], delimiter: str) -> None:
    texts = [text for each in texts if (text := each.replace(",", delimiter)).strip()] or ["a"]
    fields = _fields(_TEXTS)
    parsed = _parse(Csv(fields, ["a", "b", "c"], delimiter, header=False), "\n".join(texts).encode())
    rows = [next(csv.reader([text], delimiter=delimiter)) for text in texts]
    assert parsed.is_read.tolist() == [len(row) == 3 for row in rows]
    expected = [tuple(value or None for value in row) for row in rows if len(row) == 3]
    assert parsed.fields.select(field.column for field in fields).rows() == expected
