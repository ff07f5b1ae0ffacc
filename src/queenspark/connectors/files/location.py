"""The location of files: a local path, or the URL of a file system that pyarrow supports."""

from __future__ import annotations

import re
from typing import NamedTuple

import pyarrow as pa
from pyarrow import fs

from ...sql.options import without_password
from ..checks import Unreachable

#: File systems without folders: a path without files is like an empty one.
_WITHOUT_FOLDERS = ("s3", "gcs", "abfs")
_SECOND_US = 1_000_000
_GLOB = re.compile(r"[*?\[]")
_URL = re.compile(r"[a-z][a-z0-9+.-]*://")


class Found(NamedTuple):
    """A file in a location."""

    path: str
    bytes: int
    modified_us: int


class Location:
    """A file, a folder (recursive), or a pattern with `*`, `?`, `[…]` and `**`.

    Files and folders whose names start with `_` or `.` are skipped, as in Spark.
    """

    def __init__(self, path: str) -> None:
        """Raises Unreachable if the path is not valid."""
        if not _URL.match(path) and not path.startswith("/"):
            raise Unreachable(
                f"path {path!r} is relative to a process's working directory; use an absolute path"
            )
        #: The path without secrets.
        self.shown = without_password(path)
        try:
            system, own = fs.FileSystem.from_uri(path) if _URL.match(path) else _local(path)
        except (pa.ArrowInvalid, OSError, ValueError, NotImplementedError) as error:
            reason = str(error).replace(path, self.shown)
            raise Unreachable(f"{self.shown} cannot be reached: {reason}") from None
        self.system: fs.FileSystem = system
        self._path: str = own
        self._is_pattern = _GLOB.search(self._path) is not None
        self._matches = _pattern(self._path).fullmatch

    def files(self) -> list[Found]:
        """List the current files, oldest first. Raises Unreachable."""
        try:
            return sorted(self._files(), key=lambda found: (found.modified_us, found.path))
        except FileNotFoundError:
            if self._is_empty():
                return []
            raise Unreachable(
                f"{self.shown} does not exist; create the folder first, or correct the path"
            ) from None
        except (pa.ArrowInvalid, OSError) as error:
            raise Unreachable(f"{self.shown} cannot be listed: {error}") from None

    def stat(self, path: str) -> Found | None:
        """Return the current size and time of a file, or None if it no longer exists."""
        info = self.system.get_file_info(path)
        return _found(info) if info.type == fs.FileType.File else None

    def is_unchanged(self, now: Found, size: int, modified_us: int) -> bool:
        """Whether a file still has the size and time with which it was listed."""
        # The time of a single object has no fractions of a second, that of a listing may have.
        unit = _SECOND_US if self.system.type_name == "s3" else 1
        return (now.bytes, now.modified_us // unit) == (size, modified_us // unit)

    def open(self, path: str) -> pa.NativeFile:
        """Open a file for random access."""
        return self.system.open_input_file(path)

    def _is_empty(self) -> bool:
        """Whether a path that was not found is in a bucket that exists."""
        if self.system.type_name not in _WITHOUT_FOLDERS:
            return False
        try:
            bucket = self.system.get_file_info(self._path.partition("/")[0])
        except OSError:
            return False
        return bool(bucket.type == fs.FileType.Directory)

    def _files(self) -> list[Found]:
        if not self._is_pattern:
            info = self.system.get_file_info(self._path)
            if info.type == fs.FileType.File:
                return [_found(info)]
        base = _GLOB.split(self._path)[0].rpartition("/")[0] or "/" if self._is_pattern else self._path
        infos = self.system.get_file_info(fs.FileSelector(base, recursive=True))
        return [
            _found(info)
            for info in infos
            if info.type == fs.FileType.File
            and not _is_hidden(info.path[len(base) :])
            and (not self._is_pattern or self._matches(info.path))
        ]


def _local(path: str) -> tuple[fs.FileSystem, str]:
    return fs.LocalFileSystem(), path.rstrip("/") or "/"


def _found(info: fs.FileInfo) -> Found:
    return Found(info.path, info.size or 0, (info.mtime_ns or 0) // 1000)


def _is_hidden(below: str) -> bool:
    return any(name.startswith(("_", ".")) for name in below.split("/"))


def _pattern(path: str) -> re.Pattern[str]:
    """Compile a glob: `*` and `?` do not match `/`, and `**/` matches any number of folders."""
    found, rest = "", path
    while rest:
        if rest.startswith("**/"):
            found, rest = found + "(?:.*/)?", rest[3:]
        elif match := re.match(r"\[!?[^\]/]+\]", rest):
            inside = match[0][1:-1]
            found += f"[{'^' + inside[1:] if inside.startswith('!') else inside}]"
            rest = rest[match.end() :]
        else:
            found += {"*": "[^/]*", "?": "[^/]"}.get(rest[0], re.escape(rest[0]))
            rest = rest[1:]
    return re.compile(found)
