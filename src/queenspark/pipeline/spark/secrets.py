"""Secrets on their way to Spark's workers.

Spark shows options, plans and closures in its UI, its logs and its event log. So none of them carries a
secret: they carry a reference, `secret:` and the path of a file that only its owner can read. Where a worker
runs on another machine, the environment of Spark's executors has to have the secrets.
"""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import msgspec

from ...settings import EncryptionKeys, Settings, decode_key, variable
from ..errors import OptionError

_SCHEME = "secret:"


class Secrets(msgspec.Struct, frozen=True):
    """The database, the keys of encrypted queues, and whatever else a query needs, by name."""

    url: str
    encryption_key: EncryptionKeys | None = None
    more: Mapping[str, str] = msgspec.field(default_factory=dict)

    def __repr__(self) -> str:
        return "Secrets(…)"


def seal(found: Secrets) -> str:
    """A reference to secrets, which may be shown to anybody. It ends with this process."""
    path = _folder() / secrets.token_hex(16)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.encode(found))
    return f"{_SCHEME}{path}"


@lru_cache(maxsize=64)
def reveal(reference: str) -> Secrets:
    """The secrets of a reference. Whatever is none is taken for the URL of the database itself."""
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
            "this worker of Spark runs where the pipeline's secrets are not: set"
            f" {variable('database_url')} (and {variable('encryption_key')}, if the pipeline has one) in the"
            " environment of Spark's executors"
        )
    key = settings.encryption_key
    return Secrets(settings.database_url, decode_key(key) if key else None)


@lru_cache(maxsize=1)
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="queenspark-secrets-"))  # for its owner only
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # a fork must not take it away
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder
