"""The output file of an export, with its position file.

A page is appended and on disk before its position is kept. After a crash the file is cut to the length that
belongs to the position, so each message is in it once.
"""

import gzip
import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Protocol, Self

import msgspec

from queenspark.cli.exits import Exit, Failure
from queenspark.cli.files.bookmark import write_whole


class Checkpoint(msgspec.Struct):
    """The position in a queue that belongs to a length of a file."""

    #: Options that affect the contents of the file.
    wanted: dict[str, Any]
    #: When the queue was created: another queue of the same name has other positions.
    created: str
    position: str | None = None
    bytes: int = 0
    messages: int = 0
    columns: list[str] | None = None


class Output(Protocol):
    """Takes pages of an export."""

    checkpoint: Checkpoint | None

    def begin(self, checkpoint: Checkpoint) -> None:
        """Prepare to resume from a position."""
        ...

    def append(self, page: bytes, checkpoint: Checkpoint) -> None:
        """Write a page; `checkpoint` is the position after it."""
        ...


class Standard:
    """Standard output, which stores no position."""

    checkpoint: Checkpoint | None = None

    def begin(self, checkpoint: Checkpoint) -> None:
        """Nothing has to be done."""

    def append(self, page: bytes, checkpoint: Checkpoint) -> None:
        """Write a page."""
        sys.stdout.buffer.write(page)
        sys.stdout.buffer.flush()


class OutputFile:
    """A file of lines, or one that is made of lines at the end."""

    def __init__(self, path: Path, wanted: Any, *, overwrite: bool) -> None:
        self._path = path
        self._as_parquet = wanted.kind == "parquet"
        self._lines = path.with_name(path.name + ".part") if self._as_parquet else path
        self._position = path.with_name(path.name + ".position")
        self._options: dict[str, Any] = msgspec.to_builtins(wanted)
        self._overwrite = overwrite
        self._file: BinaryIO | None = None
        self.checkpoint: Checkpoint | None = None

    def __enter__(self) -> Self:
        if self._overwrite:
            self._position.unlink(missing_ok=True)
        self.checkpoint = self._kept()
        if self.checkpoint is None and self._path.exists() and not self._overwrite:
            raise Failure(
                f"{self._path} already exists: choose another file, or use --overwrite.", Exit.USAGE
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def begin(self, checkpoint: Checkpoint) -> None:
        """Truncate the file to its stored length. The position is stored first, so that the file is ours."""
        if self.checkpoint is None:
            write_whole(self._position, msgspec.json.encode(checkpoint))
        try:
            self._file = self._lines.open("r+b" if self._lines.exists() else "w+b")
            if self._file.seek(0, os.SEEK_END) < checkpoint.bytes:
                raise Failure(
                    f"{self._lines} is shorter than when the export stopped: use --overwrite to start over."
                )
            self._file.truncate(checkpoint.bytes)
            self._file.seek(checkpoint.bytes)
        except OSError as error:
            raise Failure(f"Cannot write {self._path}: {error.strerror}.") from None

    def append(self, page: bytes, checkpoint: Checkpoint) -> None:
        """Write a page, then its position."""
        assert self._file is not None
        try:
            # Members of gzip can follow each other, so the file is complete after each page.
            packed = gzip.compress(page, mtime=0) if page and self._lines.suffix == ".gz" else page
            self._file.write(packed)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise Failure(f"Cannot write {self._path}: {error.strerror}.") from None
        checkpoint.bytes = self._file.tell()
        write_whole(self._position, msgspec.json.encode(checkpoint))
        self.checkpoint = checkpoint

    def finish(self) -> None:
        """Make the file from its lines, if it is not made of lines."""
        if not self._as_parquet:
            return
        from queenspark.cli.files.parquet import write_parquet

        if not self.checkpoint or not self.checkpoint.messages:
            raise Failure(
                "No messages, so the columns are unknown: no Parquet file was written.", Exit.NOTHING
            )
        beside = self._path.with_name(self._path.name + ".new")
        write_parquet(self._lines, beside)
        beside.replace(self._path)
        self._position.unlink()
        self._lines.unlink()

    def _kept(self) -> Checkpoint | None:
        try:
            checkpoint = msgspec.json.decode(self._position.read_bytes(), type=Checkpoint)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            raise Failure(f"Cannot read {self._position}: {error}. Use --overwrite to start over.") from None
        if checkpoint.wanted != self._options:
            raise Failure(
                f"{self._path} was started with another queue or other options: use the same ones to"
                " continue, or --overwrite to start over.",
                Exit.USAGE,
            )
        return checkpoint
