"""A route: an endpoint with its required right, its input and its responses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from .call import Call
from .response import Lines, Response
from .right import Right

Endpoint = Callable[[Any, Call], Awaitable[Response | Lines]]


class Route(NamedTuple):
    """An endpoint and its description; the route table also generates the OpenAPI document."""

    method: str
    path: str
    endpoint: Endpoint
    summary: str
    right: Right
    #: Body type by status: None for no body, `str` for plain text, anything else is JSON. Standard errors
    #: need no entry.
    responses: Mapping[int, Any]
    query: type[msgspec.Struct] | None = None
    body: type[msgspec.Struct] | None = None
    #: Error texts for missing or mistyped fields, if the API promises a specific text.
    messages: dict[str, str] = {}  # noqa: RUF012 - never changed
    empty_body: bool = False
    #: Whether it may stream JSON lines instead of the body for 200.
    may_send_lines: bool = False
