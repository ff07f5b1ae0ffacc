"""What CREATE SINK checks of a folder: it can be written to, and has no files of another sink."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from ..checks import Unreachable

METADATA = "_spark_metadata"
"""Spark's list of the files that belong to a folder."""

_URL = re.compile(r"[a-z][a-z0-9+.-]*://")


def check_sink(options: dict[str, str]) -> None:
    """Check the folder of a version, `path`. Raises Unreachable.

    Folders of other file systems are left to the job, which fails with the reason.
    """
    path = options["path"]
    if path.startswith("file://"):
        path = path.removeprefix("file://")
    elif _URL.match(path):
        return
    if not path.startswith("/"):
        raise Unreachable(
            f"path is {path!r}, which depends on the folder of a process; give an absolute path"
        )
    folder = Path(path)
    if (folder / METADATA).exists():
        raise Unreachable(
            f"{folder} has the files of another sink; choose another path, or remove the folder"
        )
    # What was not there goes again: the statement may be a dry run, or be refused for another reason.
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        for each in missing:
            each.rmdir()
    except OSError as error:
        raise Unreachable(
            f"{folder} cannot be written to: {error.strerror}; correct the path, or the rights of the folder"
        ) from error
