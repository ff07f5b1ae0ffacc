"""Uvicorn's protocol, with head and body sent in one system call, and bounded read timeouts.

Uvicorn writes head and body separately; for small responses the two system calls were a third of the broker's
time. It also waits forever for a request that has begun: a client that sends a byte now and then, or an
endless head or trailer, could hold connections and memory indefinitely.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class _Corked:
    """A transport that buffers writes until the next iteration of the event loop."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def _flush(self) -> None:
        if self._parts:
            parts, self._parts = self._parts, []
            self._transport.write(b"".join(parts))

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


MOST_HEAD_BYTES = 64 * 1024
_WHOLE = 20  # times the timeout, for a whole body

_RESPONSES = {
    408: b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
    431: b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
}


class Protocol(HttpToolsProtocol):
    """A client connection."""

    _began: float | None = None  # start of the incomplete request, if any
    _moved: float = 0.0  # time of its last body bytes
    _head_bytes = 0  # of an incomplete head, or of the trailers after the last body bytes
    _in_head = True
    _progressed = False  # whether the bytes being parsed ended the head, or had body bytes

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start, with buffered writes."""
        corked = _Corked(cast("asyncio.Transport", transport), self.loop)
        super().connection_made(cast("asyncio.Transport", corked))
        self._began = self._moved = self.loop.time()

    def data_received(self, data: bytes) -> None:
        """Parse incoming bytes, with a bound on the head and the trailers."""
        self._progressed = False
        super().data_received(data)
        if self._began is not None and not self._progressed:
            self._head_bytes += len(data)
            if self._head_bytes > MOST_HEAD_BYTES:
                self._refuse(431)

    def on_message_begin(self) -> None:
        """Note the start of a request."""
        super().on_message_begin()
        self._began = self._moved = self.loop.time()
        self._in_head, self._head_bytes = True, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; trailers, which follow the body, are ignored, and must not pass as headers."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Note the end of the head."""
        self._in_head, self._head_bytes, self._progressed = False, 0, True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Note progress of the body."""
        self._moved = self.loop.time()
        self._head_bytes, self._progressed = 0, True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note the end of the request."""
        self._began = None
        super().on_message_complete()

    def give_up(self, now: float, patience: float) -> None:
        """Close the connection when its request stalls: no complete head, or no progress of the body."""
        if self._began is None or self.flow.read_paused:
            return
        if now - self._moved > patience or now - self._began > _WHOLE * patience:
            self._refuse(408)

    def _refuse(self, status: int) -> None:
        """Send an error, unless a response has begun, and close."""
        self._began = None
        if self.transport.is_closing():
            return
        cycle: Any = self.cycle  # None before the first request, despite its type
        if cycle is None or cycle.response_complete:
            self.transport.write(_RESPONSES[status])
        self.transport.close()
