"""The checks of CREATE SOURCE for files: that they can be listed, and the columns of the first one."""

from __future__ import annotations

import csv

import polars as pl
import pyarrow as pa

from ...sql.sampling import sampled_paths
from ...sql.types import BIGINT, BOOLEAN, DATE, DOUBLE, JSON, STRING, TIMESTAMP, SqlType, decimal
from ..checks import Columns, Unreachable
from .compressed import Compressed, codec_of
from .file_options import CSV_ONLY, FileOptions
from .lines import LineTooLong
from .location import Found, Location
from .parquet import Parquet

_SAMPLE = 256 * 1024


def check_source(options: dict[str, str], columns: Columns) -> Columns:
    """Return the declared columns, or those of the first file. Raises Unreachable."""
    chosen = FileOptions.of(options)
    if chosen.format != "csv":
        for option in sorted(CSV_ONLY & options.keys()):
            raise Unreachable(
                f"{option} is an option of CSV, and the format is {chosen.format}; "
                "remove it, or choose format = 'csv'"
            )
    location = Location(chosen.path)
    files = location.files()
    if chosen.format == "text":
        if columns and [(name.lower(), kind) for name, kind in columns] != [("value", "STRING")]:
            raise Unreachable("text has one column, value STRING; omit the columns, or choose another format")
        return (("value", "STRING"),)
    if columns:
        return columns
    if not files:
        raise Unreachable(
            f"{location.shown} has no files yet, so the columns are unknown; declare them: "
            "CREATE SOURCE name (column type, …) WITH (…)"
        )
    try:
        found = _sampled(chosen, location, files[0])
    except (pa.ArrowInvalid, OSError, LineTooLong, UnicodeError, csv.Error) as error:
        raise Unreachable(f"{files[0].path} cannot be read as {chosen.format}: {error}") from None
    if not found:
        raise Unreachable(
            f"no columns found in {files[0].path} as {chosen.format}; declare them, or correct the format"
        )
    return tuple((name, str(kind)) for name, kind in found.items() if not name.startswith("_"))


def _sampled(options: FileOptions, location: Location, file: Found) -> dict[str, SqlType]:
    if options.format == "parquet":
        return {field.name: _of_arrow(field.type) for field in Parquet(location.open(file.path)).schema}
    lines = _first_lines(location, file)
    if options.format == "json":
        return {str(path[0]): kind for path, kind in sampled_paths(lines).items() if len(path) == 1}
    rows = list(csv.reader((line.decode("utf-8-sig") for line in lines), delimiter=options.delimiter))
    if options.header == "false":
        raise Unreachable("a CSV file without a header has no column names; declare the columns")
    names = [name.strip() for name in rows[0]] if rows else []
    return {
        name: _of_texts([row[number] for row in rows[1:] if number < len(row)])
        for number, name in enumerate(names)
    }


def _first_lines(location: Location, file: Found) -> list[bytes]:
    codec = codec_of(file.path)
    source = (
        location.open(file.path) if codec is None else Compressed(lambda: location.open(file.path), codec)
    )
    data: bytes = source.read(_SAMPLE) if isinstance(source, pa.NativeFile) else source.read_at(_SAMPLE, 0)
    lines = data.splitlines()
    return lines[:-1] if len(data) == _SAMPLE else lines


def _of_texts(values: list[str]) -> SqlType:
    """Infer the type that fits all values of a CSV column."""
    texts = pl.Series([value for value in values if value], dtype=pl.String)
    if texts.is_empty():
        return STRING
    for kind in (BIGINT, DOUBLE):
        if texts.str.strip_chars().cast(kind.column, strict=False).null_count() == 0:
            return kind
    if texts.str.to_lowercase().is_in(["true", "false"]).all():
        return BOOLEAN
    times = texts.str.contains(r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}")
    if times.all():
        return TIMESTAMP
    return DATE if texts.str.contains(r"^\d{4}-\d{2}-\d{2}$").all() else STRING


def _of_arrow(kind: pa.DataType) -> SqlType:
    if pa.types.is_integer(kind):
        return BIGINT
    if pa.types.is_floating(kind):
        return DOUBLE
    if pa.types.is_decimal(kind):
        return decimal(kind.precision, kind.scale)
    if pa.types.is_timestamp(kind):
        return TIMESTAMP
    if pa.types.is_nested(kind):
        return JSON
    found = {pa.bool_(): BOOLEAN, pa.date32(): DATE}
    return found.get(kind, STRING)
