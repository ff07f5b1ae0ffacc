"""Splits text into lines with their byte offsets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

CHUNK = 4 * 1024 * 1024
LONGEST = 64 * 1024 * 1024
"""A longer line means that the file has another format."""
_NEWLINE = 10
_STEP = 64 * 1024


class Stream(Protocol):
    """A file with random access."""

    def read_at(self, size: int, offset: int) -> bytes:
        """Return `size` bytes at an offset; fewer only at the end."""


class Lines(NamedTuple):
    """Complete lines: their bytes, their starts in `data`, and the offset of `data` in the file."""

    data: bytes
    starts: npt.NDArray[np.int64]
    offset: int

    @property
    def offsets(self) -> pl.Series:
        """The file offset of each line."""
        return pl.Series(self.starts[:-1] + self.offset, dtype=pl.Int64)

    @property
    def height(self) -> int:
        """The number of lines."""
        return len(self.starts) - 1

    def texts(self) -> pl.Series:
        """Return the lines with their line ends, without copying; invalid UTF-8 is replaced by U+FFFD."""
        if not _is_utf8(self.data):
            return pl.Series([self.line(number) for number in range(self.height)], dtype=pl.String)
        array = pa.LargeStringArray.from_buffers(
            self.height, pa.py_buffer(self.starts), pa.py_buffer(self.data)
        )
        return pl.Series(pl.from_arrow(array))

    def only(self, keep: npt.NDArray[np.bool_]) -> Lines:
        """Return the lines selected by a mask. Their file offsets are lost: read `offsets` first."""
        sizes = np.diff(self.starts)
        bytes_kept = np.frombuffer(self.data, dtype=np.uint8)[np.repeat(keep, sizes)]
        return Lines(bytes_kept.tobytes(), np.concatenate([[0], np.cumsum(sizes[keep])]).astype(np.int64), 0)

    def line(self, number: int) -> str:
        """Return one line without its line end."""
        raw = self.data[self.starts[number] : self.starts[number + 1]]
        return raw.rstrip(b"\r\n").decode(errors="replace")


class LineTooLong(ValueError):
    """A line exceeds the maximum length."""


def lines_between(stream: Stream, start: int, end: int, size: int) -> Iterator[Lines]:
    """Yield the lines that start in `[start, end)` of a file with `size` bytes, in chunks.

    A line that starts before `start` belongs to the previous range.
    """
    at = start if start == 0 else _next_line(stream, start - 1)
    while at < end and (data := stream.read_at(min(CHUNK, end - at), at)):
        if not data.endswith(b"\n") and at + len(data) < size:
            cut = data.rfind(b"\n") + 1
            # Read the last line of the range, and a line longer than a chunk, to its end.
            data = data[:cut] if cut and at + len(data) < end else data + _rest(stream, at + len(data))
        yield _lines(data, at)
        at += len(data)


def _next_line(stream: Stream, at: int) -> int:
    """Return the offset of the next line after the one that contains an offset."""
    while data := stream.read_at(_STEP, at):
        found = data.find(b"\n")
        if found >= 0:
            return at + found + 1
        at += len(data)
    return at


def _rest(stream: Stream, at: int) -> bytes:
    """Return the rest of a line."""
    found = b""
    while data := stream.read_at(_STEP, at + len(found)):
        end = data.find(b"\n") + 1
        if end:
            return found + data[:end]
        found += data
        if len(found) > LONGEST:
            raise LineTooLong(f"the line at byte {at} is longer than {LONGEST} bytes")
    return found


def _lines(data: bytes, offset: int) -> Lines:
    ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == _NEWLINE) + 1
    starts = np.concatenate([[0], ends]).astype(np.int64)
    if starts[-1] != len(data):
        starts = np.append(starts, len(data))
    return Lines(data, starts, offset)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
