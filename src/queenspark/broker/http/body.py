"""The request body: read within a limit, or drained if unused."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from ..errors import ApiError, bad_request
from .call import Call

_DISCARD_SECONDS = 30.0
_IDLE_SECONDS = 5.0
_DISCARD_TIMES = 4  # times the body limit
_DISCARD_AT_LEAST = 64 * 1024 * 1024  # bytes


async def read(call: Call, limit: int) -> bytes:
    """Read the whole body; raise 413 as soon as it exceeds the limit."""
    # Before the first `receive`, which sends "100 Continue" to a waiting client.
    for name, value in call.header_pairs:
        if name == b"content-length" and value.isdigit() and int(value) > limit:
            raise _too_large(limit)
        if name == b"content-encoding" and value.lower() not in (b"", b"identity"):
            raise ApiError(
                415, "the request body is compressed: send it uncompressed, without Content-Encoding"
            )
    message = await call.receive()
    body: bytes = message.get("body", b"")
    if message.get("more_body"):
        parts = [body]
        size = len(body)
        while size <= limit and message.get("more_body"):
            message = await call.receive()
            if message["type"] == "http.disconnect":
                raise bad_request("the request ended early")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
        body = b"".join(parts)
    call.read_to_end = not message.get("more_body")
    if len(body) > limit:
        raise _too_large(limit)
    return body


def _too_large(limit: int) -> ApiError:
    return ApiError(413, f"the request body is larger than {limit} bytes; send smaller batches")


def has_body(call: Call) -> bool:
    """Whether the request has a body."""
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value != b"0")
        for name, value in call.header_pairs
    )


def is_long(call: Call, limit: int) -> bool:
    """Whether the body exceeds the limit, or may."""
    lengths = [value for name, value in call.header_pairs if name == b"content-length"]
    return not lengths or not all(value.isdigit() and int(value) <= limit for value in lengths)


async def discard(call: Call, limit: int) -> None:
    """Drain the rest of a body, within bounds.

    Closing a connection with unread data resets it, and a client that is still sending then sees a broken
    connection instead of its response.
    """
    left = max(_DISCARD_TIMES * limit, _DISCARD_AT_LEAST)
    with suppress(TimeoutError):
        async with asyncio.timeout(_DISCARD_SECONDS):
            while left > 0 and not call.read_to_end:
                message = await asyncio.wait_for(call.receive(), _IDLE_SECONDS)
                if message["type"] == "http.disconnect":
                    return
                left -= len(message.get("body", b""))
                call.read_to_end = not message.get("more_body")
