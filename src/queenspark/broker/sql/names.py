"""Job names in statements and paths: `name`, or `namespace.name`."""

from __future__ import annotations

from collections.abc import Sequence

from ...sql import SqlError
from ...sql.errors import did_you_mean
from ...sql.source import Span
from ...store.definitions import DEFAULT_NAMESPACE, WINDOW_QUEUES
from ...store.job_change import JobChange
from ...store.names import name_fault
from ..http import Caller, Right


def split_name(name: str) -> tuple[str, str]:
    """Split a job name into namespace and name."""
    namespace, _, own = name.rpartition(".")
    return namespace or DEFAULT_NAMESPACE, own


def check_new_name(name: str, span: Span) -> None:
    """Reject a name that is invalid for a queue."""
    fault = name_fault(name)
    if fault is None and not all(name.split(".")):
        fault = "has an empty part before or after a dot"
    if fault is None and name.startswith(WINDOW_QUEUES):
        fault = f"begins with {WINDOW_QUEUES}, like the window queues of streams"
    if fault is not None:
        raise span.error(f"the name {name} {fault}; choose another")


def outside(what: str, name: str, span: Span) -> SqlError:
    """The error for a name outside the caller's scopes: the same as for a missing one."""
    return span.error(f"there is no {what} {name}, or you have no right to it")


async def no_such(change: JobChange, caller: Caller, what: str, name: str, span: Span) -> SqlError:
    """The error for a job or stream that does not exist."""
    names = [job.full_name for job in await change.all()]
    kind = {"stream": "schema"}.get(what, what)
    if what != "job":
        names = names if what == "stream" else []
        names += [declared.name for declared in await change.relations.all() if declared.kind == kind]
    hint = did_you_mean(name, [each for each in names if caller.may(Right.JOB_READ, each)])
    is_readable = caller.may(Right.QUEUE_READ, name)
    if not hint and what == "stream" and is_readable and await change.queue_ids([name]):
        hint = "; it is a queue, which DELETE /api/v1/resources/queues removes"
    return span.error(f"there is no {what} {name}{hint}")


def listed(texts: Sequence[str | None]) -> str:
    """Join texts about objects; None stands for an object outside the caller's scopes, which only counts."""
    shown = [text for text in texts if text is not None]
    others = len(texts) - len(shown)
    if not others:
        return ", ".join(shown)
    count = f"{others} other{'' if others == 1 else 's'}"
    return f"{', '.join(shown)} and {count}" if shown else count
