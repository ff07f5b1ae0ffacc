"""The data folder of an embedded PostgreSQL: its layout, and the lock of the process that owns it."""

import fcntl
import hashlib
import os
import stat
import tempfile
from pathlib import Path
from typing import IO

from queenspark.embedded.errors import EmbeddedPostgresError

# The address of a Unix socket holds 107 bytes on Linux, 103 on macOS.
LONGEST_SOCKET_PATH = 103
LONGEST_SOCKET_NAME = "/.s.PGSQL.5432"


class AlreadyRunning(EmbeddedPostgresError):
    """Another process owns the data folder."""

    def __init__(self, path: Path, pid: int | None) -> None:
        self.pid = pid
        owner = f"process {pid}" if pid else "another process"
        super().__init__(f"The data folder {path} is in use: {owner} runs Queenspark on it.")


class DataDir:
    """A data folder; `take` makes this process its owner until `release` or its end."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.cluster = self.path / "postgres"
        self.unfinished_cluster = self.path / "postgres.new"
        self.pid_file = self.cluster / "postmaster.pid"
        self.log_file = self.path / "postgres.log"
        self.socket_dir = self._socket_dir()
        self._lock: IO[str] | None = None

    def take(self) -> None:
        """Make the folder and become its owner; raises `AlreadyRunning` when it has one."""
        if self._lock is not None:
            return
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            # PostgreSQL may run as another user, who has to pass through.
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
        """Give the folder back."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def postmaster(self) -> list[str]:
        """The lines of the postmaster's own file; none when no server runs or ran here."""
        try:
            return self.pid_file.read_text().splitlines()
        except FileNotFoundError:
            return []

    def _socket_dir(self) -> Path:
        inside = self.path / "socket"
        if len(os.fsencode(inside)) + len(LONGEST_SOCKET_NAME) <= LONGEST_SOCKET_PATH:
            return inside
        # The same folder for the same data, so that a later start finds what an earlier one left.
        name = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"queenspark-{name}"
