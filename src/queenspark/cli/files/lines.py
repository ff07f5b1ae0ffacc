"""The lines of a file, with their numbers and offsets, and a digest of all that was read."""

import hashlib
from collections.abc import Iterator
from typing import BinaryIO

LONGEST = 64 * 1024 * 1024
"""Bytes of the longest line that is read; the broker takes no request beyond this by default."""

_CHUNK = 1024 * 1024


class Lines:
    """Reads a stream of bytes line by line. Offsets count bytes after decompression."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._digest = hashlib.sha256()
        #: Bytes read so far, and the number of the last line.
        self.offset = 0
        self.number = 0

    def digest(self) -> str:
        """The SHA-256 of everything that was read so far."""
        return self._digest.hexdigest()

    def skip(self, offset: int, number: int, digest: str) -> bool:
        """Read to where `number` lines end; whether the file is the same up to there, and a line ends."""
        last = b"\n"
        while self.offset < offset and (chunk := self._stream.read(min(_CHUNK, offset - self.offset))):
            self._add(chunk)
            last = chunk[-1:]
        self.number = number
        if self.offset < offset or self.digest() != digest:
            return False
        # The last line may have had no newline. One that came since then belongs to it; anything else
        # would make it another line.
        more = b"" if last == b"\n" else self._stream.read(1)
        if more == b"\n":
            self._add(more)
        return more in (b"", b"\n")

    def __iter__(self) -> Iterator[bytes | None]:
        """Each line with its end; None for a line that is longer than `LONGEST`."""
        while line := self._read():
            if len(line) <= LONGEST:
                yield line
            else:
                while not line.endswith(b"\n") and (line := self._read(continued=True)):
                    pass
                yield None

    def _read(self, *, continued: bool = False) -> bytes:
        line = self._stream.readline(LONGEST + 1)
        if line:
            self._add(line)
            self.number += not continued
        return line

    def _add(self, part: bytes) -> None:
        self._digest.update(part)
        self.offset += len(part)
