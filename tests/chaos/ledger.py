"""A record of a client's requests and responses that survives a kill of the client."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TAIL = 1 << 20
"""More than the length of any line."""


class Ledger:
    """A file of JSON lines; each is written to the OS before the client continues."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT)
        size = os.fstat(self._file).st_size
        start = max(0, size - TAIL)
        tail = os.pread(self._file, TAIL, start)
        # A killed client may have left a partial line; it did nothing after that.
        whole = tail[: tail.rfind(b"\n") + 1]
        os.ftruncate(self._file, start + len(whole))
        os.lseek(self._file, 0, os.SEEK_END)
        lines = whole.splitlines()
        #: The last line of the previous run.
        self.last: list[Any] | None = json.loads(lines[-1]) if lines else None

    def write(self, *fields: Any) -> None:
        """Append a line."""
        os.write(self._file, json.dumps(fields, separators=(",", ":")).encode() + b"\n")


def lines(path: Path) -> Iterator[list[Any]]:
    """Yield all complete lines of a ledger."""
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield json.loads(line)
