"""Names of jobs in statements and paths: `name`, or `namespace.name`."""

from __future__ import annotations

from ...sql import SqlError
from ...sql.source import Span
from ...store.definitions import DEFAULT_NAMESPACE, WINDOW_QUEUES
from ...store.names import name_fault


def split_name(name: str) -> tuple[str, str]:
    """The namespace and the name of a job."""
    namespace, _, own = name.rpartition(".")
    return namespace or DEFAULT_NAMESPACE, own


def check_new_name(name: str, span: Span) -> None:
    """Refuse a name that no queue can have."""
    fault = name_fault(name)
    if fault is None and not all(name.split(".")):
        fault = "has a dot without a name beside it"
    if fault is None and name.startswith(WINDOW_QUEUES):
        fault = f"begins with {WINDOW_QUEUES}, like the window queues of streams"
    if fault is not None:
        raise span.error(f"the name {name} {fault}; choose another")


def unknown(what: str, name: str, span: Span, hint: str) -> SqlError:
    """The error about a name that nothing has."""
    return span.error(f"there is no {what} {name}{hint}")
