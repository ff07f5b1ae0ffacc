"""Compressed text as a stream that can be read from any place on, as long as that is not far back."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

_SUFFIXES = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd", ".bz2": "bz2", ".lz4": "lz4"}
_KEPT = 8 * 1024 * 1024  # of what was read last
_STEP = 64 * 1024  # of a file that was cut off, no more than this is lost before its end


def codec_of(path: str) -> str | None:
    """How a file is compressed, by the end of its name."""
    return next((codec for suffix, codec in _SUFFIXES.items() if path.endswith(suffix)), None)


class Compressed:
    """A compressed file. To go back it begins at the start again."""

    def __init__(self, opened: Any, codec: str) -> None:
        """`opened` opens the file; it is called again to go back."""
        self._open = opened
        self._codec = codec
        self._begin()

    def _begin(self) -> None:
        self._stream = pa.CompressedInputStream(self._open(), self._codec)
        self._at = 0  # of the end of what is kept
        self._kept = bytearray()
        #: Why the file ends before its end.
        self.fault: str | None = None
        self.is_over = False

    def read_at(self, size: int, offset: int) -> bytes:
        """So many bytes from a place on; fewer only at the end."""
        if offset < self._at - len(self._kept):
            self._begin()
        while self._at < offset + size and not self.is_over:
            data = self._more(_STEP)
            self._at += len(data)
            self._kept += data
            wanted = max(_KEPT, self._at - offset)
            if len(self._kept) > 2 * wanted:
                del self._kept[:-wanted]
        begin = offset - (self._at - len(self._kept))
        return bytes(self._kept[begin : begin + size])

    @property
    def size(self) -> int | None:
        """How many bytes there are; None as long as the end was not read."""
        return self._at if self.is_over else None

    def whole(self) -> int:
        """How many bytes there are; all of it is read for that."""
        while not self.is_over:
            self.read_at(_STEP, self._at)
        return self._at

    def _more(self, size: int) -> bytes:
        try:
            data: bytes = self._stream.read(size)
        except (OSError, pa.ArrowInvalid, EOFError) as error:
            self.fault, data = str(error), b""
        self.is_over = not data
        return data
