"""The ASGI application: finds a route, admits the caller, runs the handler, sends the response."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from ..errors import ApiError
from .asgi import Receive, Scope, Send
from .body import discard, has_body, is_long, read
from .call import Call
from .caller import Caller
from .cors import Cors
from .decode import decode_body, decode_query
from .forbidden import Forbidden
from .response import JSON, JSON_LINES, Lines, Response, failure
from .route import Route
from .router import Router

log = logging.getLogger("queenspark.broker")

Admit = Callable[[Call, Route], Awaitable[Caller]]

_JSON = (b"content-type", JSON)
_CLOSE = (b"connection", b"close")


class App:
    """The ASGI application.

    `admit` runs before every handler and before the body is read: it returns the caller, or raises the
    `ApiError` that rejects them. `OPTIONS`, unknown paths and unknown methods have no handler.
    """

    def __init__(
        self,
        broker: Any,
        routes: Sequence[Route],
        *,
        max_body_bytes: int,
        max_depth: int,
        cors: Cors,
        admit: Admit,
        not_served: Mapping[str, str] | None = None,
    ) -> None:
        self._broker = broker
        self._router = Router(routes, not_served)
        self._max_body_bytes = max_body_bytes
        self._max_depth = max_depth
        self._cors = cors
        self._admit = admit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        call = Call(scope, receive)
        try:
            response = await self._respond(call, scope)
            if isinstance(response, Lines):
                await self._send_lines(send, call, response)
                return
        except Exception as error:  # noqa: BLE001 - every error gets a response
            response = self._failed(call, error)
        finally:
            call.close()
        await self._send(send, call, response)

    def _failed(self, call: Call, error: Exception) -> Response:
        if isinstance(error, ApiError):
            return failure(error)
        translated = self._broker.translate(error)
        request_id = None
        if translated is None:
            request_id = uuid4().hex[:12]
            log.error(
                "request %s %s failed, reference %s", call.method, call.url_path, request_id, exc_info=error
            )
            translated = ApiError(500, f"internal error, reference {request_id}")
        return failure(translated, request_id)

    async def _respond(self, call: Call, scope: Scope) -> Response | Lines:
        method = scope["method"]
        path = scope["raw_path"].decode("latin-1").split("?", 1)[0]
        if method == "OPTIONS" and (allowed := self._router.allowed(path)):
            headers = ((b"allow", ", ".join(allowed).encode()), *self._cors.preflight(call.headers, allowed))
            return Response(204, headers=headers)
        match, call.path = self._router.find("GET" if method == "HEAD" else method, path)
        route = match.route
        call.right = route.right
        try:
            call.caller = await self._admit(call, route)
            if route.query is not None:
                call.query = decode_query(route, scope["query_string"])
            if match.decoder is not None:
                raw = await read(call, self._max_body_bytes)
                call.body_bytes = len(raw)
                call.body = decode_body(match, raw, self._max_depth)
            response = await route.endpoint(self._broker, call)
        except Forbidden as denied:
            await self._broker.note_denial(call, route, denied)
            raise
        if call.acted_on is not None or (route.right.is_administrative and method not in ("GET", "HEAD")):
            status = response.status if isinstance(response, Response) else 200
            await self._broker.note_act(call, route, status)
        return response

    async def _send_lines(self, send: Send, call: Call, response: Lines) -> None:
        """Stream lines. An error before the first line becomes an error response."""
        gone = call.watch()
        lines = response.lines
        try:
            line = await anext(lines, b"")
            headers = [(b"content-type", JSON_LINES), *response.headers]
            if self._cors.open:
                headers += self._cors.permission(call.headers)
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            while line and not gone.done() and call.is_known():
                await send({"type": "http.response.body", "body": line, "more_body": True})
                line = await self._next_line(call, lines)
        finally:
            await lines.aclose()
        await send({"type": "http.response.body", "body": b""})

    async def _next_line(self, call: Call, lines: AsyncGenerator[bytes]) -> bytes:
        """Return the next line; an error at this point becomes the last line."""
        try:
            return await anext(lines, b"")
        except Exception as error:  # noqa: BLE001 - every error gets a response
            return self._failed(call, error).body + b"\n"

    async def _send(self, send: Send, call: Call, response: Response) -> None:
        status, body, content_type, more = response
        headers = []
        if status != 204:
            headers.append(_JSON if content_type is JSON else (b"content-type", content_type))
            headers.append((b"content-length", str(len(body)).encode()))
        headers += more
        if self._cors.open:
            headers += self._cors.permission(call.headers)
        unread = not call.read_to_end and has_body(call)
        if unread and is_long(call, self._max_body_bytes):
            headers.append(_CLOSE)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        if unread:
            # The client gets the whole response now, but the connection stays open while it is still sending.
            await send({"type": "http.response.body", "body": body, "more_body": True})
            await discard(call, self._max_body_bytes)
            body = b""
        await send({"type": "http.response.body", "body": body})
