"""What CREATE SOURCE and CREATE SINK check outside: what is there, and which columns a source has."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_MODULES = {"files": ".files.files_check", "kafka": ".kafka.kafka_check"}
_SINKS = {"files": ".files.sink_check", "kafka": ".kafka.kafka_check"}

Columns = tuple[tuple[str, str], ...]


class Unreachable(Exception):
    """A source or sink outside cannot be used: the problem, then the fix."""


def check_source(connector: str, options: dict[str, str], columns: Columns) -> Columns:
    """The columns of a source: the declared ones, or those that a sample shows. Raises Unreachable.

    The module of a connector has a function `check_source(options, columns)`. It may take seconds: brokers
    call it in a thread.
    """
    module: Any = import_module(_MODULES[connector], __package__)
    found: Columns = module.check_source(options, columns)
    return found


def check_sink(connector: str, options: dict[str, str]) -> None:
    """Check that a sink can be written to. Raises Unreachable.

    The module of a connector has a function `check_sink(options)`; of files, `path` is the folder of the
    version.
    """
    module: Any = import_module(_SINKS[connector], __package__)
    module.check_sink(options)
