"""A small file system that can be full."""

import os
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

MEGABYTE = 1 << 20


class Disk:
    """A folder; where this process may mount, on a file system of its own that `fill` leaves no room on."""

    def __init__(self, megabytes: int) -> None:
        self._size = megabytes * MEGABYTE
        self.folder = Path(tempfile.mkdtemp(prefix="queenspark-chaos-disk-"))
        options = f"size={self._size},mode=0755"
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "chaos", self.folder], capture_output=True, check=False
        )
        #: Whether it can be filled.
        self.is_small = mounted.returncode == 0

    @property
    def used(self) -> int:
        """Bytes in use."""
        found = os.statvfs(self.folder)
        return (found.f_blocks - found.f_bfree) * found.f_frsize

    def fill(self) -> None:
        """Leave no room."""
        for spare in range(32):  # it grows meanwhile
            if self._resize(self.used + spare * MEGABYTE // 4):
                return

    def empty(self) -> None:
        """Give it room again."""
        self._resize(self._size)

    def _resize(self, size: int) -> bool:
        command = ["mount", "-o", f"remount,size={size}", str(self.folder)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.is_small:
            subprocess.run(["umount", "-l", self.folder], check=False)
