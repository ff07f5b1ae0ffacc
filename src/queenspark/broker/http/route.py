"""A route: an endpoint with the right that it needs, what it takes and what it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from .answer import Answer, Lines
from .call import Call
from .right import Right

Endpoint = Callable[[Any, Call], Awaitable[Answer | Lines]]


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
