"""Queenspark: queues on PostgreSQL, and windows over them on Spark.

The client's names are here: `from queenspark import Queen, AsyncQueen`. They are loaded on first access, so
that the other packages do not depend on them. So is the version: every process of Spark imports this package.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .client import *  # noqa: F403

    __version__: str


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("queenspark")
    client = import_module("queenspark.client")
    if name in client.__all__:
        return getattr(client, name)
    raise AttributeError(f"module 'queenspark' has no attribute {name!r}")
