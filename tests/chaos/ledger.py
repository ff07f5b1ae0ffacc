"""What a client did and was told, in a file that survives its death."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TAIL = 1 << 20
"""Longer than any line."""


class Ledger:
    """A file of JSON lines; each is handed to the system before the client goes on."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT)
        size = os.fstat(self._file).st_size
        start = max(0, size - TAIL)
        tail = os.pread(self._file, TAIL, start)
        # A killed client may have written half a line: it did nothing after that.
        whole = tail[: tail.rfind(b"\n") + 1]
        os.ftruncate(self._file, start + len(whole))
        os.lseek(self._file, 0, os.SEEK_END)
        lines = whole.splitlines()
        #: The last line of an earlier life.
        self.last: list[Any] | None = json.loads(lines[-1]) if lines else None

    def write(self, *fields: Any) -> None:
        """Add a line."""
        os.write(self._file, json.dumps(fields, separators=(",", ":")).encode() + b"\n")


def lines(path: Path) -> Iterator[list[Any]]:
    """All lines of a ledger."""
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield json.loads(line)
