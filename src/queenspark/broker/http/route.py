"""A route: an endpoint with the right that it needs, what it takes and what it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from .answer import Answer, Lines
from .call import Call

Endpoint = Callable[[Any, Call], Awaitable[Answer | Lines]]


class Right(StrEnum):
    """What a caller must be allowed to do. Every route needs exactly one."""

    PUBLIC = "public"
    QUEUE_PUSH = "queue:push"
    QUEUE_CONSUME = "queue:consume"
    #: Push and acknowledge in one step; a caller who may do this may do either alone.
    QUEUE_TRANSACT = "queue:transact"
    QUEUE_READ = "queue:read"
    QUEUE_ADMIN = "queue:admin"
    STREAM_CONSUME = "stream:consume"
    STREAM_READ = "stream:read"
    STREAM_ADMIN = "stream:admin"
    #: Run SQL: read every queue, push rows, define and drop jobs.
    SQL = "sql:run"
    SYSTEM_READ = "system:read"
    SYSTEM_ADMIN = "system:admin"


class Route(NamedTuple):
    """An endpoint and its description; the table of routes is also the source of the OpenAPI document."""

    method: str
    path: str
    endpoint: Endpoint
    summary: str
    right: Right
    #: The type of the body by status: None for no body, `str` for plain text, anything else is JSON.
    #: Errors with the usual body need no entry.
    answers: Mapping[int, Any]
    query: type[msgspec.Struct] | None = None
    body: type[msgspec.Struct] | None = None
    #: Messages for fields that are missing or of a wrong type, where the API promises a certain text.
    messages: dict[str, str] = {}  # noqa: RUF012 - never changed
    empty_body: bool = False
    #: Whether it may answer with lines of JSON in place of the body for 200.
    may_send_lines: bool = False
