"""Reads the files of a source in order: existing files, oldest first, then new ones.

A position is [file number, offset]. The offset is a byte of the (uncompressed) text, or a row of Parquet. The
list of files is kept in the database, so file numbers are stable. All files are one shard.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec
import polars as pl
import pyarrow as pa

from ...sql.keys import LONGEST
from ...sql.payload import Field
from ...store.job_files import FileEntry, JobFiles
from ..fields import ColumnFields
from ..reader import DEAD, Limits, Next, Position, Read, ReadFailed, Split
from ..readers import Source
from .compressed import Compressed, codec_of
from .file_options import FileOptions
from .formats import Csv, JsonLines, Parsed, Text, TextFormat
from .lines import Lines, LineTooLong, lines_between
from .location import Found, Location
from .parquet import Parquet

LIST_SECONDS = 1.0
"""Interval between listings for new files."""
SPLIT_BYTES = 8 * 1024 * 1024
SPLIT_ROWS = 250_000
_SAMPLE = 64 * 1024
_FIRST_LINE = 1024 * 1024
_MOST_TABLES = 20


class _Split(msgspec.Struct, frozen=True):
    """A range of one file, with the file's size and time when it was listed."""

    file: FileEntry
    start: int
    end: int


class FilesReader:
    """The files of one version of a job."""

    has_clock = False

    def __init__(self, source: Source, fields: Sequence[Field]) -> None:
        self._source = source
        self._fields = list(fields)
        self._options = FileOptions.of(source.options)
        self.is_bounded = self._options.mode == "once"
        self._files: list[FileEntry] = []
        self._listed_at = -LIST_SECONDS
        self._growing: dict[str, Found] = {}
        self._list: JobFiles | None = None
        self._compressed: tuple[int, Compressed] | None = None
        self._tables: dict[int, Parquet | None] = {}

    def __reduce__(self) -> Any:
        return FilesReader, (self._source, self._fields)

    # In the driver

    def start(self) -> Position:
        """Return the position before the first file; `latest` and a time skip older files."""
        start = self._source.start
        # `once` reads, and `latest` skips, all files that are present.
        self._list_new(settled=not (self.is_bounded or start == "latest"))
        if self._growing:
            time.sleep(max(0.0, self._listed_at + LIST_SECONDS - time.monotonic()))
            self._list_new(settled=True)
        if start == "earliest":
            return [0, 0]
        if start == "latest":
            return [len(self._files), 0]
        from_us = int(datetime.fromisoformat(start).astimezone(UTC).timestamp() * 1e6)
        # Files of the first listing are sorted by time; older ones further on were found later.
        newer = (file.number for file in self._files if file.modified_us >= from_us)
        return [next(newer, len(self._files)), 0]

    def next(self, position: Position, limits: Limits) -> Next | None:
        """Return the end of the next batch, which may span files, within the limits."""
        number, at = position
        self._refresh(number)
        if number >= len(self._files) and not self.is_bounded:
            self._list_new(settled=True)
        rows, size = limits
        begun = (number, at)
        while number < len(self._files) and rows > 0 and size > 0:
            file = self._files[number]
            end, read_rows, read_bytes = self._reach(file, at, rows, size)
            rows, size = rows - read_rows, size - read_bytes
            number, at = (number + 1, 0) if end is None else (number, end)
        if (number, at) == begun:
            return None
        return Next([number, at], has_more=number < len(self._files))

    def splits(self, start: Position, end: Position) -> list[Split]:
        """Return ranges of files."""
        (number, at), (last, last_at) = start, end
        self._refresh(last)
        found: list[Split] = []
        for file in self._files[number : last + 1]:
            upto = last_at if file.number == last else self._size(file)
            step = SPLIT_ROWS if self._is_parquet else SPLIT_BYTES
            if not self._is_parquet and codec_of(file.path) is not None:
                step = max(upto - at, 1)
            found += [_Split(file, low, min(low + step, upto)) for low in range(at, upto, step)]
            if upto == at and file.number != last:
                found.append(_Split(file, 0, 0))  # so that the task reports why the file is unreadable
            at = 0
        return found

    def report(self, position: Position) -> dict[str, Any]:
        """Return files and bytes, read and unread, and the modification time of the oldest unread file."""
        number, at = position
        self._refresh(number)
        read = sum(file.bytes for file in self._files[:number])
        if number < len(self._files) and not self._is_parquet and codec_of(self._files[number].path) is None:
            read += at
        total = sum(file.bytes for file in self._files)
        found: dict[str, Any] = {
            "files": number, "bytes": read, "filesLeft": len(self._files) - number, "bytesLeft": total - read,
        }  # fmt: skip
        if left := self._files[number:]:
            oldest = min(file.modified_us for file in left)
            found["unreadSince"] = datetime.fromtimestamp(oldest / 1e6, UTC).isoformat()
        return found

    def _list_new(self, *, settled: bool) -> None:
        """List new files. With `settled`, skip files that changed since the last listing: they may grow."""
        if time.monotonic() < self._listed_at + LIST_SECONDS:
            return
        self._refresh(len(self._files))
        known = {file.path for file in self._files}
        new = [found for found in self._location.files() if found.path not in known]
        ready = [found for found in new if not settled or self._growing.get(found.path) == found]
        paths = {found.path for found in ready}
        self._growing = {found.path: found for found in new if found.path not in paths}
        self._listed_at = time.monotonic()
        if ready:
            self._ledger.add(ready)
            self._refresh(len(self._files))

    def _refresh(self, number: int) -> None:
        if number >= len(self._files):
            self._files += self._ledger.since(len(self._files))

    def _reach(self, file: FileEntry, at: int, rows: int, size: int) -> tuple[int | None, int, int]:
        """Return the offset to stop at (None for the end of the file), and the approximate rows and bytes."""
        if self._is_parquet:
            parquet = self._parquet(file)
            if parquet is None:
                return None, 0, 0
            end = min(parquet.rows, at + rows)
            while parquet.bytes_of(at, end) > size and end - at > 1000:
                end = at + max((end - at) // 2, 1000)
            return None if end >= parquet.rows else end, end - at, parquet.bytes_of(at, end)
        stream = self._stream(file)
        sample = stream.read_at(_SAMPLE, at)
        line = max(len(sample) // max(sample.count(b"\n"), 1), 1)
        end = at + min(size, max(rows * line, _SAMPLE))
        whole = self._size(file) if isinstance(stream, Plain) else None
        if isinstance(stream, Compressed):
            stream.read_at(1, end)
            whole = stream.size
        upto = end if whole is None else min(end, whole)
        return (None if whole is not None and end >= whole else end), (upto - at) // line + 1, upto - at

    def _size(self, file: FileEntry) -> int:
        """Return the end offset of a file: its size, its uncompressed size, or its row count."""
        if self._is_parquet:
            parquet = self._parquet(file)
            return 0 if parquet is None else parquet.rows
        if codec_of(file.path) is None:
            return file.bytes
        stream = self._stream(file)
        assert isinstance(stream, Compressed)
        return stream.whole()

    # In the tasks

    def read(self, split: Split) -> Iterator[Read]:
        """Yield the records of a range. Fails if the file has changed since it was listed."""
        try:
            file, now = split.file, self._location.stat(split.file.path)
            if now is None or not self._location.is_unchanged(now, file.bytes, file.modified_us):
                raise ReadFailed(_changed(file, now))
            yield from self._rows(split) if self._is_parquet else self._lines(split)
        except LineTooLong as error:
            raise ReadFailed(f"{split.file.path}: {error}; is the format {self._options.format}?") from error
        except OSError as error:
            raise ReadFailed(f"{split.file.path} cannot be read: {error}") from error

    def _lines(self, split: _Split) -> Iterator[Read]:
        file, stream = split.file, self._stream(split.file)
        first = b""
        if self._options.format == "csv":
            first = next((lines.data for lines in lines_between(stream, 0, 1, _FIRST_LINE)), b"")
        begin = max(split.start, self._text.header_end(first))
        whole = file.bytes if isinstance(stream, Plain) else 2**62
        for lines in lines_between(stream, begin, split.end, whole):
            yield _read(file, lines, self._text.parse(lines, first))
        if isinstance(stream, Compressed) and stream.fault is not None and split.end >= (stream.size or 0):
            yield _broken(file, stream.size or 0, f"the file is truncated or corrupt: {stream.fault}")

    def _rows(self, split: _Split) -> Iterator[Read]:
        parquet = self._parquet(split.file)
        if parquet is None:
            yield _broken(split.file, 0, "not a Parquet file, or truncated")
            return
        fields = ColumnFields(self._fields)
        for first, table in parquet.read(split.start, split.end, fields.names):
            records = fields.columns(table) if self._fields else pl.DataFrame(height=table.height)
            offsets = pl.int_range(first, first + table.height, eager=True, dtype=pl.Int64)
            yield Read(
                _with_position(split.file, offsets, records),
                pl.DataFrame(schema=DEAD),
                int(table.estimated_size()),
            )

    # Files

    @property
    def _is_parquet(self) -> bool:
        return self._options.format == "parquet"

    @property
    def _location(self) -> Location:
        return _location(self._options.path)

    @property
    def _text(self) -> TextFormat:
        match self._options.format:
            case "csv":
                columns = [name for name, _ in self._source.columns]
                header = self._options.header == "true"
                return Csv(self._fields, columns, self._options.delimiter, header=header)
            case "text":
                return Text(self._fields)
        return JsonLines(self._fields)

    @property
    def _ledger(self) -> JobFiles:
        if self._list is None:
            source = self._source
            self._list = JobFiles(source.url, (source.stream, source.version), source.epoch)
        return self._list

    def _stream(self, file: FileEntry) -> Plain | Compressed:
        codec = codec_of(file.path)
        if codec is None:
            return Plain(self._open(file))
        if self._compressed is None or self._compressed[0] != file.number:
            self._compressed = (file.number, Compressed(lambda: self._open(file), codec))
        return self._compressed[1]

    def _open(self, file: FileEntry) -> pa.NativeFile:
        try:
            return self._location.open(file.path)
        except FileNotFoundError as error:
            raise ReadFailed(_changed(file, None)) from error
        except OSError as error:
            raise ReadFailed(f"{file.path} cannot be opened: {error}") from error

    def _parquet(self, file: FileEntry) -> Parquet | None:
        """Return an open file, or None if it is not valid Parquet; it then becomes one dead record."""
        if file.number not in self._tables:
            self._tables = dict(list(self._tables.items())[-_MOST_TABLES:])
            try:
                self._tables[file.number] = Parquet(self._open(file))
            except pa.ArrowInvalid:
                self._tables[file.number] = None
        return self._tables[file.number]

    def close(self) -> None:
        """Disconnect."""
        if self._list is not None:
            self._list.close()


class Plain:
    """An uncompressed file."""

    def __init__(self, file: pa.NativeFile) -> None:
        self._file = file

    def read_at(self, size: int, offset: int) -> bytes:
        """Return `size` bytes at an offset; fewer only at the end."""
        self._file.seek(offset)
        found: bytes = self._file.read(size)
        return found


def open_reader(source: Source, fields: Sequence[Field], pseudo: Sequence[str] = ()) -> FilesReader:
    """Return the reader of a file source."""
    return FilesReader(source, fields)


@lru_cache(maxsize=8)
def _location(path: str) -> Location:
    return Location(path)


def _read(file: FileEntry, lines: Lines, parsed: Parsed) -> Read:
    offsets = lines.offsets
    records = _with_position(file, offsets.filter(pl.Series(parsed.is_read)), parsed.fields)
    dead = [
        _dead(file, int(offsets[number]), f"{file.path} at byte {offsets[number]}: {reason}")
        for number, reason in parsed.reasons.items()
    ]
    return Read(records, pl.DataFrame(dead, schema=DEAD, orient="row"), len(lines.data))


def _with_position(file: FileEntry, offsets: pl.Series, fields: pl.DataFrame) -> pl.DataFrame:
    return fields.with_columns(
        pl.lit(file.number, dtype=pl.Int64).alias("txid"),
        offsets.alias("id"),
        pl.lit(_partition(file)).alias("partition"),
    ) if fields.width else pl.DataFrame({"id": offsets}).with_columns(
        pl.lit(file.number, dtype=pl.Int64).alias("txid"), pl.lit(_partition(file)).alias("partition")
    )  # fmt: skip


def _dead(file: FileEntry, offset: int, reason: str) -> tuple[int, int, str, str]:
    return file.number, offset, _partition(file), reason


def _broken(file: FileEntry, offset: int, reason: str) -> Read:
    dead = [_dead(file, offset, f"{file.path}: {reason}")]
    return Read(pl.DataFrame(), pl.DataFrame(dead, schema=DEAD, orient="row"), 0)


def _partition(file: FileEntry) -> str:
    return file.path[-LONGEST:]


def _changed(file: FileEntry, now: Found | None) -> str:
    if now is None:
        return f"{file.path} was deleted before it was read; restore it, or DROP the job and create it again"
    return (
        f"{file.path} was modified after it was listed: it had {file.bytes} bytes and now has {now.bytes}. "
        "Files must not change: restore the old one, or DROP the job and create it again; "
        "write files elsewhere and move them into the folder when they are complete"
    )
