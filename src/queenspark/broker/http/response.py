"""Responses: a status, a body and headers."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, NamedTuple

import msgspec

from ..errors import ApiError

Pairs = tuple[tuple[bytes, bytes], ...]

JSON = b"application/json"
JSON_LINES = b"application/x-ndjson"

_encode = msgspec.json.Encoder().encode


class Response(NamedTuple):
    """Status, body and additional headers of a response."""

    status: int
    body: bytes = b""
    content_type: bytes = JSON
    headers: Pairs = ()


class Lines(NamedTuple):
    """A response of status 200 that streams JSON lines."""

    lines: AsyncGenerator[bytes]
    headers: Pairs = ()


class Error(msgspec.Struct, rename="camel"):
    """The body of an error response."""

    #: The problem and its fix, for people.
    error: str
    #: The kind of error, for programs.
    code: str
    #: Whether the same request may succeed later.
    retryable: bool
    #: Identifies the cause in the broker's log, for errors of the broker.
    request_id: str | msgspec.UnsetType = msgspec.UNSET
    #: Position of the error in the SQL, counted from 1.
    line: int | msgspec.UnsetType = msgspec.UNSET
    column: int | msgspec.UnsetType = msgspec.UNSET


def json(value: Any, status: int = 200) -> Response:
    """Build a JSON response."""
    return Response(status, _encode(value))


def failure(error: ApiError, request_id: str | None = None) -> Response:
    """Build the response for an error."""
    headers = []
    if error.retry_after is not None:
        headers.append((b"retry-after", str(error.retry_after).encode()))
    if error.status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="queenspark"'))
    if error.allow:
        headers.append((b"allow", ", ".join(error.allow).encode()))
    line, column = error.at or (msgspec.UNSET, msgspec.UNSET)
    body = Error(error.message, error.code, error.retryable, request_id or msgspec.UNSET, line, column)
    return Response(error.status, _encode(body), headers=tuple(headers))


NOTHING = Response(204)
