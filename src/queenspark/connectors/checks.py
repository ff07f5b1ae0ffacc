"""The external checks of CREATE SOURCE and CREATE SINK: existence, access, and the columns of a source."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_MODULES = {"files": ".files.files_check", "kafka": ".kafka.kafka_check"}
_SINKS = {"files": ".files.sink_check", "kafka": ".kafka.kafka_check"}

Columns = tuple[tuple[str, str], ...]


class Unreachable(Exception):
    """An external source or sink cannot be used. The message states the problem, then the fix."""


def check_source(connector: str, options: dict[str, str], columns: Columns) -> Columns:
    """Return the columns of a source: the declared ones, or those inferred from a sample. Raises Unreachable.

    Each connector's module has a function `check_source(options, columns)`. It may take seconds: brokers call
    it in a thread.
    """
    module: Any = import_module(_MODULES[connector], __package__)
    found: Columns = module.check_source(options, columns)
    return found


def check_sink(connector: str, options: dict[str, str]) -> None:
    """Check that a sink is writable. Raises Unreachable.

    Each connector's module has a function `check_sink(options)`. For files, `path` is the version's folder.
    """
    module: Any = import_module(_SINKS[connector], __package__)
    module.check_sink(options)
