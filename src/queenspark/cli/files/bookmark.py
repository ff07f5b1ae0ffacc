"""The progress of a file's import, kept in the user's state folder.

A message's transactionId is the id of its import and its offset in the file, so messages sent again after
the bookmark are duplicates for the broker.
"""

import fcntl
import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from queenspark.cli.exits import Exit, Failure
from queenspark.cli.state_folder import state_folder


class Bookmark(msgspec.Struct):
    """Everything up to `offset` is in the queue, or was skipped."""

    file: str
    #: Options that affect the messages.
    options: dict[str, str | None]
    id: str = msgspec.field(default_factory=lambda: secrets.token_hex(8))
    offset: int = 0
    number: int = 0
    digest: str = ""
    header: list[str] = msgspec.field(default_factory=list)
    messages: int = 0
    skipped: int = 0
    #: Size and modification time when the end of the file was reached.
    finished: tuple[int, int] | None = None


@contextmanager
def bookmark(url: str, queue: str, file: Path) -> Iterator["BookmarkFile"]:
    """The bookmark of a file's import into a queue; only one import of it runs at a time."""
    key = hashlib.sha256("\0".join((url, queue, str(file))).encode("utf-8", "surrogateescape")).hexdigest()
    try:
        folder = state_folder() / "imports"
        folder.mkdir(exist_ok=True, mode=0o700)
        lock = (folder / f"{key[:32]}.lock").open("ab")
    except (OSError, RuntimeError) as error:
        raise Failure(
            f"Cannot store the import position: {error}. Set XDG_STATE_HOME to a writable folder.",
            Exit.USAGE,
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Failure(f"Another import of {file} to {queue} is running.") from None
        yield BookmarkFile(folder / f"{key[:32]}.json")


class BookmarkFile:
    """A bookmark on disk."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> Bookmark | None:
        """The bookmark, if the import was begun before."""
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=Bookmark)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            raise Failure(f"Cannot read {self._path}: {error}. Use --again to start over.") from None

    def write(self, mark: Bookmark) -> None:
        """Keep the bookmark; it is on disk when this returns."""
        write_whole(self._path, msgspec.json.encode(mark))


def write_whole(path: Path, content: bytes) -> None:
    """Write a small file so that a crash leaves the old one or the new one."""
    beside = path.with_name(path.name + ".new")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        raise Failure(f"Cannot write {path}: {error.strerror}.") from None
