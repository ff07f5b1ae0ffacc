"""The data pipeline on Spark: Spark itself, the connector `queen`, the streams query, and the process.

The public names are loaded on first access: Spark's Python processes import this package, not all of them
need the connector, and each would spend about 0.2 s on it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .connector.data_source import register
    from .spark.session import start_session

_HOMES = {"register": ".connector.data_source", "start_session": ".spark.session"}

__all__ = ["register", "start_session"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)
