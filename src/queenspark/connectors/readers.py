"""The reader of a source, by its connector."""

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
    """A source as one version of a job reads it; JSON, so that it can travel as an option of Spark."""

    #: The job, its version, and the epoch of the pipeline: notes are kept for them (see store/job_files.py).
    url: str
    stream: int
    version: int
    epoch: int
    name: str
    connector: str
    options: dict[str, str]
    #: Declared columns with their types, as SQL writes them.
    columns: tuple[tuple[str, str], ...]
    #: earliest, latest or an ISO time.
    start: str = "earliest"


def reader_of(source: Source, fields: Sequence[Field], pseudo: Sequence[str] = ()) -> Reader:
    """The reader of a source that gives these fields of its records, and the pseudo-columns that it has.

    The module of a connector has a function `open_reader(source, fields, pseudo)`; what it needs is imported
    only when a job reads such a source.
    """
    module: Any = import_module(_MODULES[source.connector], __package__)
    opened: Callable[[Source, Sequence[Field], Sequence[str]], Reader] = module.open_reader
    return opened(source, fields, pseudo)
