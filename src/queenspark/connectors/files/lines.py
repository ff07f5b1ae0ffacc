"""Lines of text, each with the place at which it begins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

CHUNK = 4 * 1024 * 1024
LONGEST = 64 * 1024 * 1024
"""A line that is longer than this is no line: the file has another format."""
_NEWLINE = 10
_STEP = 64 * 1024


class Stream(Protocol):
    """Bytes of a file that can be read from some place on."""

    def read_at(self, size: int, offset: int) -> bytes:
        """So many bytes from a place on; fewer only at the end."""


class Lines(NamedTuple):
    """Whole lines: their bytes, and where each begins, in `data` and in the file."""

    data: bytes
    starts: npt.NDArray[np.int64]
    offset: int

    @property
    def offsets(self) -> pl.Series:
        """Where the lines begin in the file."""
        return pl.Series(self.starts[:-1] + self.offset, dtype=pl.Int64)

    @property
    def height(self) -> int:
        """How many there are."""
        return len(self.starts) - 1

    def texts(self) -> pl.Series:
        """The lines with their ends, without a copy; what is no UTF-8 has marks in place of it."""
        if not _is_utf8(self.data):
            return pl.Series([self.line(number) for number in range(self.height)], dtype=pl.String)
        array = pa.LargeStringArray.from_buffers(
            self.height, pa.py_buffer(self.starts), pa.py_buffer(self.data)
        )
        return pl.Series(pl.from_arrow(array))

    def only(self, keep: npt.NDArray[np.bool_]) -> Lines:
        """Some of the lines; their places in the file are lost, so ask for `offsets` first."""
        sizes = np.diff(self.starts)
        bytes_kept = np.frombuffer(self.data, dtype=np.uint8)[np.repeat(keep, sizes)]
        return Lines(bytes_kept.tobytes(), np.concatenate([[0], np.cumsum(sizes[keep])]).astype(np.int64), 0)

    def line(self, number: int) -> str:
        """One line, without its end."""
        raw = self.data[self.starts[number] : self.starts[number + 1]]
        return raw.rstrip(b"\r\n").decode(errors="replace")


class LineTooLong(ValueError):
    """There is no end of a line within what a line may have."""


def lines_between(stream: Stream, start: int, end: int, size: int) -> Iterator[Lines]:
    """The lines that begin at `start` or later and before `end`, in chunks, of a file of that size.

    A line that began before `start` belongs to the range before.
    """
    at = start if start == 0 else _next_line(stream, start - 1)
    while at < end and (data := stream.read_at(min(CHUNK, end - at), at)):
        if not data.endswith(b"\n") and at + len(data) < size:
            cut = data.rfind(b"\n") + 1
            # The last line of the range, and one that is longer than a chunk, are read to their end.
            data = data[:cut] if cut and at + len(data) < end else data + _rest(stream, at + len(data))
        yield _lines(data, at)
        at += len(data)


def _next_line(stream: Stream, at: int) -> int:
    """Where a line begins after the end of the one at a place."""
    while data := stream.read_at(_STEP, at):
        found = data.find(b"\n")
        if found >= 0:
            return at + found + 1
        at += len(data)
    return at


def _rest(stream: Stream, at: int) -> bytes:
    """The rest of a line."""
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
