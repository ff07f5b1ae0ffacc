"""Uvicorn's protocol, with the head and the body of an answer sent in one system call, and patience bounded.

Uvicorn writes head and body one by one; at small answers the two system calls were a third of the broker's
time. It also waits without an end for a request that has begun: whoever sends one byte now and then, or a
head that does not end, could hold connections and memory for as long as they like.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class _Corked:
    """A transport that gathers what is written until the event loop comes round."""

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
_WHOLE = 20  # times the patience, for a whole body

_ANSWERS = {
    408: b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
    431: b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
}


class Protocol(HttpToolsProtocol):
    """One connection of a client."""

    _began: float | None = None  # the request that is not complete yet
    _moved: float = 0.0  # when something of its body came last
    _head_bytes = 0
    _in_head = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, with writes gathered."""
        corked = _Corked(cast("asyncio.Transport", transport), self.loop)
        super().connection_made(cast("asyncio.Transport", corked))
        self._began = self._moved = self.loop.time()

    def data_received(self, data: bytes) -> None:
        """Take in some of a request; a head has to end."""
        super().data_received(data)
        if self._in_head and self._began is not None:
            self._head_bytes += len(data)
            if self._head_bytes > MOST_HEAD_BYTES:
                self._refuse(431)

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._began = self._moved = self.loop.time()
        self._in_head, self._head_bytes = True, 0

    def on_headers_complete(self) -> None:
        """Its head is here."""
        self._in_head = False
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Some of its body is here."""
        self._moved = self.loop.time()
        super().on_body(body)

    def on_message_complete(self) -> None:
        """All of it is here."""
        self._began = None
        super().on_message_complete()

    def give_up(self, now: float, patience: float) -> None:
        """End the connection when its request does not come: the head at once, the body bit by bit."""
        if self._began is None or self.flow.read_paused:
            return
        if now - self._moved > patience or now - self._began > _WHOLE * patience:
            self._refuse(408)

    def _refuse(self, status: int) -> None:
        """Answer, unless an answer has begun, and close."""
        self._began = None
        if self.transport.is_closing():
            return
        cycle: Any = self.cycle  # None before the first request, whatever its type says
        if cycle is None or cycle.response_complete:
            self.transport.write(_ANSWERS[status])
        self.transport.close()
