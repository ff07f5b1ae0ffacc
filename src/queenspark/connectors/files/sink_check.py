"""The checks of CREATE SINK for a folder: it is writable and contains no files of another sink."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from ...sql.options import without_password
from ..checks import Unreachable

METADATA = "_spark_metadata"
"""Spark's list of the files in a sink's folder."""

_URL = re.compile(r"[a-z][a-z0-9+.-]*://")


def check_sink(options: dict[str, str]) -> None:
    """Check the version's folder, `path`. Raises Unreachable.

    Remote folders are not checked here: the job fails with the reason.
    """
    path = options["path"]
    if (shown := without_password(path)) != path:
        raise Unreachable(
            f"{shown}: the path of a sink must not contain keys, because Spark shows it; set them in Hadoop's"
            " configuration, such as fs.s3a.access.key and fs.s3a.secret.key"
        )
    if path.startswith("file://"):
        path = path.removeprefix("file://")
    elif _URL.match(path):
        return
    if not path.startswith("/"):
        raise Unreachable(f"path {path!r} is relative to a process's working directory; use an absolute path")
    folder = Path(path)
    if (folder / METADATA).exists():
        raise Unreachable(
            f"{folder} contains files of another sink; choose another path, or remove the folder"
        )
    # Remove the folders created here: the statement may be a dry run, or be rejected for another reason.
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        for each in missing:
            each.rmdir()
    except OSError as error:
        raise Unreachable(
            f"{folder} is not writable: {error.strerror}; correct the path, or the folder's permissions"
        ) from error
