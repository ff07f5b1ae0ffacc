"""Random access to compressed text; seeking far back restarts decompression."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

_SUFFIXES = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd", ".bz2": "bz2", ".lz4": "lz4"}
_KEPT = 8 * 1024 * 1024  # bytes kept behind the read position
_STEP = 64 * 1024  # at most this much is lost before the end of a truncated file


def codec_of(path: str) -> str | None:
    """Return the compression codec of a file by its suffix, or None."""
    return next((codec for suffix, codec in _SUFFIXES.items() if path.endswith(suffix)), None)


class Compressed:
    """A compressed file. Seeking back beyond the buffer decompresses it from the start."""

    def __init__(self, opened: Any, codec: str) -> None:
        """`opened` opens the file; it is called again on every restart."""
        self._open = opened
        self._codec = codec
        self._begin()

    def _begin(self) -> None:
        self._stream = pa.CompressedInputStream(self._open(), self._codec)
        self._at = 0  # the offset of the end of the buffer
        self._kept = bytearray()
        #: The error with which a truncated file ends.
        self.fault: str | None = None
        self.is_over = False

    def read_at(self, size: int, offset: int) -> bytes:
        """Return `size` bytes at an offset; fewer only at the end."""
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
        """The uncompressed size, or None until the end has been read."""
        return self._at if self.is_over else None

    def whole(self) -> int:
        """Return the uncompressed size; reads the whole file."""
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
