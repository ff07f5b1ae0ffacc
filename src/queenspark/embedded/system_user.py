"""The system user that PostgreSQL runs as.

PostgreSQL refuses to run as root. Started by another user, it runs as that user. Started by root, it runs as
the owner of its data, which is `postgres` or `nobody` when the data is new, and that user must be able to
reach the programs and the data.
"""

import logging
import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from queenspark.embedded.errors import EmbeddedPostgresError

logger = logging.getLogger(__name__)

CANDIDATES = ("postgres", "nobody")


class PopenArguments(TypedDict, total=False):
    """The `subprocess` arguments that change the user."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True)
class SystemUser:
    """A user id and group id; `other` if they are not this process's own."""

    uid: int
    gid: int
    other: bool

    @property
    def popen_arguments(self) -> PopenArguments:
        """The arguments for a child process to run as this user."""
        if not self.other:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def own_directory(self, path: Path) -> None:
        """Create a private folder of this user, or check an existing one."""
        path.mkdir(mode=0o700, exist_ok=True)
        status = path.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid not in (self.uid, os.geteuid()):
            raise EmbeddedPostgresError(
                f"{path} belongs to another user; remove it or choose another data folder."
            )
        if status.st_uid != self.uid:
            os.chown(path, self.uid, self.gid)
        path.chmod(0o700)

    def open_the_way_to(self, *paths: Path) -> None:
        """Let this user traverse `paths` and the folders above them."""
        if not self.other:
            return
        for path in paths:
            for folder in reversed([path, *path.parents]):
                self._allow(folder, 0o1)

    def open_installation(self, bin_dir: Path) -> None:
        """Let this user run the programs in `bin_dir` with their libraries."""
        if not self.other or self._may(bin_dir / "postgres", 0o5):
            return
        package = bin_dir.parent.parent
        for root in (package, *package.parent.glob(f"{package.name}.libs")):
            for folder, _, files in os.walk(root):
                self._allow(Path(folder), 0o5)
                for name in files:
                    path = Path(folder, name)
                    self._allow(path, 0o5 if path.stat().st_mode & 0o100 else 0o4)

    def _shift(self, status: os.stat_result) -> int:
        return 6 if status.st_uid == self.uid else 3 if status.st_gid == self.gid else 0

    def _may(self, path: Path, access: int) -> bool:
        status = path.stat()
        return (status.st_mode >> self._shift(status)) & access == access

    def _allow(self, path: Path, access: int) -> None:
        if self._may(path, access):
            return
        status = path.stat()
        mode = stat.S_IMODE(status.st_mode) | access << self._shift(status)
        logger.info("changing the mode of %s to %o, so that PostgreSQL's user can traverse it", path, mode)
        path.chmod(mode)


def choose_system_user(cluster: Path) -> SystemUser:
    """Choose the user for a server on `cluster`, a folder that may not exist yet."""
    if os.geteuid() != 0:
        return SystemUser(os.geteuid(), os.getegid(), other=False)
    if cluster.exists() and (status := cluster.stat()).st_uid != 0:
        return SystemUser(status.st_uid, status.st_gid, other=True)
    for name in CANDIDATES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return SystemUser(entry.pw_uid, entry.pw_gid, other=True)
    raise EmbeddedPostgresError(
        "PostgreSQL does not run as root, and there is neither a user postgres nor nobody: "
        "start as another user, or set QUEENSPARK_DATABASE_URL."
    )
