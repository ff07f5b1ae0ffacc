"""The data folder of an embedded PostgreSQL: its layout and its lock."""

import fcntl
import hashlib
import os
import stat
import tempfile
from pathlib import Path
from typing import IO

from queenspark.embedded.errors import EmbeddedPostgresError

# The address of a Unix socket is limited to 107 bytes on Linux, 103 on macOS.
LONGEST_SOCKET_PATH = 103
LONGEST_SOCKET_NAME = "/.s.PGSQL.5432"


class AlreadyRunning(EmbeddedPostgresError):
    """Another process owns the data folder."""

    def __init__(self, path: Path, pid: int | None) -> None:
        self.pid = pid
        owner = f"process {pid}" if pid else "another process"
        super().__init__(f"The data folder {path} is in use: {owner} runs Queenspark on it.")


class DataDir:
    """A data folder; `take` makes this process its owner until `release` or exit."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.cluster = self.path / "postgres"
        self.unfinished_cluster = self.path / "postgres.new"
        self.pid_file = self.cluster / "postmaster.pid"
        self.log_file = self.path / "postgres.log"
        self.socket_dir = self._socket_dir()
        self._lock: IO[str] | None = None

    def take(self) -> None:
        """Create the folder and lock it; raises `AlreadyRunning` if it is locked."""
        if self._lock is not None:
            return
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            # PostgreSQL may run as another user, who needs to traverse the folder.
            self.path.chmod(stat.S_IMODE(self.path.stat().st_mode) & 0o711)
            lock = (self.path / "lock").open("a+")
        except OSError as error:
            raise EmbeddedPostgresError(
                f"The data folder {self.path} cannot be used: {error.strerror}."
            ) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.seek(0)
            owner = lock.read().strip()
            lock.close()
            raise AlreadyRunning(self.path, int(owner) if owner.isdigit() else None) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        self._lock = lock

    def release(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def postmaster(self) -> list[str]:
        """The lines of postmaster.pid; empty if there is none."""
        try:
            return self.pid_file.read_text().splitlines()
        except FileNotFoundError:
            return []

    def _socket_dir(self) -> Path:
        inside = self.path / "socket"
        if len(os.fsencode(inside)) + len(LONGEST_SOCKET_NAME) <= LONGEST_SOCKET_PATH:
            return inside
        # The same folder for the same data, so that a later start finds an orphaned server.
        name = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"queenspark-{name}"
