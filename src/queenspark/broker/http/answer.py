"""Answers: a status, a body and headers."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, NamedTuple

import msgspec

from ..errors import ApiError

Pairs = tuple[tuple[bytes, bytes], ...]

JSON = b"application/json"
JSON_LINES = b"application/x-ndjson"

_encode = msgspec.json.Encoder().encode


class Answer(NamedTuple):
    """Status, body and further headers of an answer."""

    status: int
    body: bytes = b""
    content_type: bytes = JSON
    headers: Pairs = ()


class Lines(NamedTuple):
    """An answer of status 200 whose lines of JSON are sent as they come."""

    lines: AsyncGenerator[bytes]


class Error(msgspec.Struct, rename="camel"):
    """The body of an answer that is not a success."""

    #: What is wrong and how to fix it, for people.
    error: str
    #: The kind of error, for programs.
    code: str
    #: Whether the same request may succeed later.
    retryable: bool
    #: Found in the broker's log beside the cause, when the fault is the broker's.
    request_id: str | msgspec.UnsetType = msgspec.UNSET
    #: Where in the SQL it is wrong, counted from 1.
    line: int | msgspec.UnsetType = msgspec.UNSET
    column: int | msgspec.UnsetType = msgspec.UNSET


def json(value: Any, status: int = 200) -> Answer:
    """A JSON answer."""
    return Answer(status, _encode(value))


def failure(error: ApiError, request_id: str | None = None) -> Answer:
    """The answer that stands for an error."""
    headers = []
    if error.retry_after is not None:
        headers.append((b"retry-after", str(error.retry_after).encode()))
    if error.status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="queenspark"'))
    if error.allow:
        headers.append((b"allow", ", ".join(error.allow).encode()))
    line, column = error.at or (msgspec.UNSET, msgspec.UNSET)
    body = Error(error.message, error.code, error.retryable, request_id or msgspec.UNSET, line, column)
    return Answer(error.status, _encode(body), headers=tuple(headers))


NOTHING = Answer(204)
