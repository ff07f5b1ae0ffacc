"""Secrets for Spark's workers.

Spark shows options, plans and closures in its UI, its logs and its event log. So these carry a reference
instead: `secret:` and the path of a file readable only by its owner. For workers on other machines, the
environment of Spark's executors has to provide the secrets.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import msgspec

from ...settings import EncryptionKeys, Settings, decode_key, variable
from ..errors import OptionError

_SCHEME = "secret:"
_PREFIX = "queenspark-secrets-locked-"  # earlier versions have folders without a lock


class Secrets(msgspec.Struct, frozen=True):
    """The database URL, the keys of encrypted queues, and other secrets of a query, by name."""

    url: str
    encryption_key: EncryptionKeys | None = None
    more: Mapping[str, str] = msgspec.field(default_factory=dict)

    def __repr__(self) -> str:
        return "Secrets(…)"


def seal(found: Secrets) -> str:
    """Return a reference to secrets, safe to show. It is valid as long as this process runs."""
    path = _folder() / secrets.token_hex(16)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.encode(found))
    return f"{_SCHEME}{path}"


@lru_cache(maxsize=64)
def reveal(reference: str) -> Secrets:
    """Return the secrets of a reference. Anything else is taken as the database URL itself."""
    if not reference.startswith(_SCHEME):
        return Secrets(reference)
    try:
        return msgspec.json.decode(Path(reference.removeprefix(_SCHEME)).read_bytes(), type=Secrets)
    except OSError:
        return _from_environment()


def _from_environment() -> Secrets:
    settings = Settings.from_env()
    if settings.database_url is None:
        raise OptionError(
            "this Spark worker cannot read the file with the pipeline's secrets: set"
            f" {variable('database_url')} (and {variable('encryption_key')}, if the pipeline has one) in the"
            " environment of Spark's executors"
        )
    key = settings.encryption_key
    return Secrets(settings.database_url, decode_key(key) if key else None)


@lru_cache(maxsize=1)
def _folder() -> Path:
    _remove_stale()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))  # private to its owner
    # Held until this process ends, and never closed.
    fcntl.flock(os.open(folder, os.O_RDONLY | os.O_DIRECTORY), fcntl.LOCK_EX)
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # a fork must not remove it
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def _remove_stale() -> None:
    """Remove the folders of this user's processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):  # of another user, locked, or just removed
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # An empty one may be of a process that is about to lock it.
                if os.fstat(descriptor).st_uid == os.getuid() and os.listdir(descriptor):
                    shutil.rmtree(folder)
            finally:
                os.close(descriptor)
