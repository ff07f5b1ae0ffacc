"""Rights required by a statement: on its sources, targets and objects."""

from __future__ import annotations

from typing import Literal

from ...sql.statements import (
    ControlJob,
    CreateSink,
    CreateSource,
    CreateStream,
    DeclareStream,
    Drop,
    Insert,
    Statement,
)
from ...store.job import Job
from ..http import Caller, Forbidden, Right
from ..reach import stream_name
from .catalogue import own_name, queues_of
from .names import outside

_OUTSIDE = {CreateSource: "CREATE SOURCE", CreateSink: "CREATE SINK"}
_CHANGES = (CreateStream, DeclareStream, CreateSource, CreateSink, Drop, ControlJob)


def check_rights(caller: Caller, statement: Statement) -> None:
    """Raise 403 without the right for this kind of statement, SqlError for a name outside the scopes."""
    if isinstance(statement, _CHANGES):
        if not caller.can(Right.JOB_ADMIN):
            raise Forbidden(caller, Right.JOB_ADMIN)
        if type(statement) in _OUTSIDE and not caller.is_admin:
            raise Forbidden(
                caller,
                Right.JOB_ADMIN,
                f"{caller.name} lacks the role admin: {_OUTSIDE[type(statement)]} lets the pipeline use the"
                " files and network of its machine; ask an administrator to run it",
            )
        name = own_name(statement.name)
        if not caller.may(Right.JOB_ADMIN, name):
            raise outside("job", name, statement.span)
        for queue in queues_of(statement) if isinstance(statement, DeclareStream) else ():
            if not caller.may(Right.QUEUE_READ, queue):
                raise outside("queue", queue, statement.span)
    elif isinstance(statement, Insert) and not caller.can(Right.QUEUE_PUSH):
        raise Forbidden(caller, Right.QUEUE_PUSH)
    elif not isinstance(statement, Insert) and not (
        caller.can(Right.QUEUE_READ) or caller.can(Right.JOB_READ)
    ):
        raise Forbidden(caller, Right.QUEUE_READ)


def may_on_job(caller: Caller, job: Job, right: Literal["read", "admin"]) -> bool:
    """Whether the caller has a right on a job, or on a stream of windows."""
    if job.is_stream:
        needed = {"read": Right.STREAM_READ, "admin": Right.STREAM_ADMIN}[right]
        return caller.may(needed, stream_name(job.namespace, job.name))
    return caller.may({"read": Right.JOB_READ, "admin": Right.JOB_ADMIN}[right], job.full_name)
