"""A small file system that can be filled."""

import os
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

MEGABYTE = 1 << 20


class Disk:
    """A folder, on its own tmpfs if this process may mount one; `fill` then leaves no free space."""

    def __init__(self, megabytes: int) -> None:
        self._size = megabytes * MEGABYTE
        self.folder = Path(tempfile.mkdtemp(prefix="queenspark-chaos-disk-"))
        options = f"size={self._size},mode=0755"
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "chaos", self.folder], capture_output=True, check=False
        )
        #: Whether `fill` is possible.
        self.is_small = mounted.returncode == 0

    @property
    def used(self) -> int:
        """Bytes in use."""
        found = os.statvfs(self.folder)
        return (found.f_blocks - found.f_bfree) * found.f_frsize

    def fill(self) -> None:
        """Shrink it until there is no free space."""
        for spare in range(32):  # usage grows in the meantime
            if self._resize(self.used + spare * MEGABYTE // 4):
                return

    def empty(self) -> None:
        """Restore its size."""
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
