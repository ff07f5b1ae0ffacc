"""Progress of a transfer: a bar on a terminal, a line now and then elsewhere."""

import sys
import time
from types import TracebackType
from typing import Self

from rich.filesize import decimal
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from queenspark.cli.output import err, say

LINE_SECONDS = 10.0


class TransferProgress:
    """Shows how many bytes and messages of a file were transferred."""

    def __init__(self, name: str, total: int | None) -> None:
        self._name = name
        self._total = total
        self._said_at = time.monotonic()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TextColumn("{task.fields[messages]:,} messages{task.fields[note]}"),
            TimeRemainingColumn(),
            console=err(),
            transient=True,
            disable=not sys.stderr.isatty(),
        )
        self._task = self._bar.add_task(name, total=total, messages=0, note="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def show(self, done: int, messages: int, note: str = "") -> None:
        """Bytes and messages so far; a line is printed at most every ten seconds."""
        self._bar.update(self._task, completed=done, messages=messages, note=note and f" ({note})")
        if self._bar.disable and time.monotonic() - self._said_at >= LINE_SECONDS:
            self._said_at = time.monotonic()
            of = "" if not self._total else f" of {decimal(self._total)}"
            say(f"{self._name}: {decimal(done)}{of}, {messages:,} messages{note and f' ({note})'}")

    def say(self, sentence: str) -> None:
        """Print a sentence above the progress bar."""
        if self._bar.disable:
            say(sentence)
        else:
            self._bar.console.print(sentence)
