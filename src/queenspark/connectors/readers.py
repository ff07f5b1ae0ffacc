"""Selects the reader of a source by its connector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import msgspec

from ..sql.payload import Field
from .reader import Reader

_MODULES = {
    "files": ".files.files_reader",
    "kafka": ".kafka.kafka_reader",
    "queue": ".queue.queue_reader",
}


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A source as read by one version of a job. Serialized to JSON as a Spark option."""

    #: Job, version and pipeline epoch identify the job's list of files (see store/job_files.py).
    url: str
    stream: int
    version: int
    epoch: int
    name: str
    connector: str
    options: dict[str, str]
    #: Declared columns with their SQL types.
    columns: tuple[tuple[str, str], ...]
    #: `earliest`, `latest` or an ISO 8601 time.
    start: str = "earliest"


def reader_of(source: Source, fields: Sequence[Field], pseudo: Sequence[str] = ()) -> Reader:
    """Return a reader that decodes these fields and pseudo-columns.

    Each connector's module has a function `open_reader(source, fields, pseudo)`. The module and its
    dependencies are imported only when a job uses the connector.
    """
    module: Any = import_module(_MODULES[source.connector], __package__)
    opened: Callable[[Source, Sequence[Field], Sequence[str]], Reader] = module.open_reader
    return opened(source, fields, pseudo)
