"""Queenspark: queues on PostgreSQL, and windows over them on Spark.

The client's names are here: `from queenspark import Queen, AsyncQueen`. They are loaded on first access, so
that the other packages do not depend on them.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .client import *  # noqa: F403

__version__ = version("queenspark")


def __getattr__(name: str) -> Any:
    client = import_module("queenspark.client")
    if name in client.__all__:
        return getattr(client, name)
    raise AttributeError(f"module 'queenspark' has no attribute {name!r}")
