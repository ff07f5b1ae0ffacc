"""The thin layer between ASGI and the endpoints: routes, requests, answers.

Written for this API rather than taken from a framework: a push of one message has to cost little more than
parsing it, and the same table of routes gives the OpenAPI document.
"""

from __future__ import annotations

import logging
import re
from asyncio import Task, create_task, sleep
from collections.abc import Awaitable, Callable, MutableMapping
from time import monotonic
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote
from uuid import uuid4

import msgspec

from .errors import ApiError, bad_request, not_found

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

log = logging.getLogger("queenspark.broker")

_JSON_HEADERS = ((b"content-type", b"application/json"), (b"access-control-allow-origin", b"*"))
_A_WHILE = 0.05  # seconds
_ROUNDS = 5  # of the event loop, until the end of a connection has come through to whoever waits for it
_encode = msgspec.json.Encoder().encode
_FIELD = re.compile(r"`(\w+)`(?: - at `\$(.*)`)?$")
_PATH = re.compile(r"at `\$([^`]*)`$")


class Answer(NamedTuple):
    """Status, body and further headers of an answer."""

    status: int
    body: bytes = b""
    content_type: bytes | None = None
    headers: tuple[tuple[bytes, bytes], ...] = ()


def json(value: Any, status: int = 200) -> Answer:
    """A JSON answer."""
    return Answer(status, _encode(value))


NOTHING = Answer(204)


class Call:
    """One request, read as its route says."""

    __slots__ = ("_began", "_gone", "_receive", "body", "body_bytes", "path", "query")

    def __init__(
        self, path: dict[str, str], query: Any, body: Any, body_bytes: int, receive: Receive
    ) -> None:
        self.path = path
        self.query = query
        self.body = body
        self.body_bytes = body_bytes
        self._receive = receive
        self._gone: Task[None] | None = None
        self._began = monotonic()

    def watch(self) -> Task[None]:
        """A task that ends when the client goes away."""
        if self._gone is None:
            self._gone = create_task(self._until_gone())
        return self._gone

    async def has_left(self) -> bool:
        """Whether the client is gone, after a look at news of it that come in at this very moment.

        Only a request that took a while is worth the look: the answer and the end of the connection may have
        reached this process together, and then either may come first.
        """
        gone = self.watch()
        if monotonic() - self._began > _A_WHILE:
            for _ in range(_ROUNDS):
                await sleep(0)
        return gone.done()

    async def _until_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def close(self) -> None:
        """Stop watching."""
        if self._gone is not None:
            self._gone.cancel()


Endpoint = Callable[[Any, Call], Awaitable[Answer]]


class Route(NamedTuple):
    """An endpoint with what it takes; the table of routes is also the source of the OpenAPI document."""

    method: str
    path: str
    endpoint: Endpoint
    summary: str
    query: type[msgspec.Struct] | None = None
    body: type[msgspec.Struct] | None = None
    #: Messages for fields that are missing or of a wrong type, where the API promises a certain text.
    messages: dict[str, str] = {}  # noqa: RUF012 - never changed
    empty_body: bool = False
    success: int = 200


class _Match(NamedTuple):
    route: Route
    segments: tuple[str, ...]
    decoder: msgspec.json.Decoder[Any] | None


class App:
    """The ASGI application."""

    def __init__(self, broker: Any, routes: list[Route], max_body_bytes: int, max_depth: int) -> None:
        self._broker = broker
        self._max_body_bytes = max_body_bytes
        self._max_depth = max_depth
        self._exact: dict[tuple[str, str], _Match] = {}
        self._shaped: dict[tuple[str, int], list[_Match]] = {}
        for route in routes:
            segments = tuple(route.path.split("/"))
            decoder = msgspec.json.Decoder(route.body) if route.body is not None else None
            match = _Match(route, segments, decoder)
            if ":" in route.path:
                self._shaped.setdefault((route.method, len(segments)), []).append(match)
            else:
                self._exact[route.method, route.path] = match

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        try:
            answer = await self._answer(scope, receive)
        except ApiError as error:
            answer = _failure(error)
        except Exception:
            reference = uuid4().hex[:12]
            log.exception("request %s %s failed, reference %s", scope["method"], scope["path"], reference)
            answer = _failure(ApiError(500, f"internal error, reference {reference}"), reference)
        await _send(send, answer)

    async def _answer(self, scope: Scope, receive: Receive) -> Answer:
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        raw_path = scope["raw_path"].decode("latin-1").split("?", 1)[0]
        match = self._exact.get((method, raw_path))
        params: dict[str, str] = {}
        if match is None:
            match, params = self._find(method, raw_path)
        route = match.route
        query = _query(route, scope["query_string"]) if route.query is not None else None
        body, size = None, 0
        if match.decoder is not None:
            raw = await self._read(scope, receive)
            size = len(raw)
            body = self._decode(match, raw)
        call = Call(params, query, body, size, receive)
        try:
            return await route.endpoint(self._broker, call)
        except BaseException as error:
            if (translated := self._broker.translate(error)) is not None:
                raise translated from error
            raise
        finally:
            call.close()

    def _find(self, method: str, path: str) -> tuple[_Match, dict[str, str]]:
        segments = path.rstrip("/").split("/")
        for match in self._shaped.get((method, len(segments)), ()):
            params: dict[str, str] = {}
            for wanted, given in zip(match.segments, segments, strict=True):
                if wanted.startswith(":"):
                    if not given:
                        break
                    params[wanted[1:]] = _unquote(given)
                elif wanted != given:
                    break
            else:
                return match, params
        if exact := self._exact.get((method, path.rstrip("/") or "/")):
            return exact, {}
        if method == "OPTIONS":
            return _PREFLIGHT, {}
        others = [
            other for other in ("GET", "POST", "PUT", "DELETE") if other != method and self._has(other, path)
        ]
        if others:
            raise ApiError(405, f"{method} is not possible here; use {' or '.join(others)}")
        raise not_found(f"there is nothing at {_unquote(path)}")

    def _has(self, method: str, path: str) -> bool:
        segments = path.split("/")
        if (method, path) in self._exact:
            return True
        return any(
            all(
                wanted.startswith(":") or wanted == given
                for wanted, given in zip(match.segments, segments, strict=True)
            )
            for match in self._shaped.get((method, len(segments)), ())
        )

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit() and int(value) > self._max_body_bytes:
                raise self._too_large()
        message = await receive()
        body: bytes = message.get("body", b"")
        if message.get("more_body"):
            parts = [body]
            size = len(body)
            while message.get("more_body"):
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise bad_request("the request ended early")
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > self._max_body_bytes:
                    raise self._too_large()
            body = b"".join(parts)
        if len(body) > self._max_body_bytes:
            raise self._too_large()
        return body

    def _too_large(self) -> ApiError:
        return ApiError(
            413, f"the request body is larger than {self._max_body_bytes} bytes; send smaller batches"
        )

    def _decode(self, match: _Match, raw: bytes) -> Any:
        route = match.route
        assert match.decoder is not None
        if not raw.strip():
            if route.empty_body:
                assert route.body is not None
                return route.body()
            raw = b"{}"
        try:
            raw.decode()  # the database takes valid UTF-8 only
            return match.decoder.decode(raw)
        except UnicodeDecodeError as error:
            raise bad_request("the request body is not valid UTF-8") from error
        except RecursionError as error:
            raise bad_request(f"the request body is nested deeper than {self._max_depth} levels") from error
        except msgspec.ValidationError as error:
            raise bad_request(_explain(str(error), route.messages)) from error
        except msgspec.DecodeError as error:
            raise bad_request(f"the request body is not valid JSON: {error}") from error


def _query(route: Route, query_string: bytes) -> Any:
    pairs = dict(parse_qsl(query_string.decode("latin-1"), keep_blank_values=False)) if query_string else {}
    try:
        return msgspec.convert(pairs, route.query, strict=False)
    except msgspec.ValidationError as error:
        raise bad_request(_explain(str(error), route.messages)) from error


def _explain(reason: str, messages: dict[str, str]) -> str:
    """Turn the decoder's words into ours: name the field, and use the promised text where there is one."""
    if reason.startswith("Object missing required field"):
        match = _FIELD.search(reason)
        field = match[1] if match else ""
        return messages.get(field, f"{field} is required")
    at = _PATH.search(reason)
    field = re.sub(r"\[[^\]]*\]$", "", at[1]).rpartition(".")[2] if at else ""
    if not field:
        return messages.get("", "the request body must be a JSON object")
    return messages.get(field, f"{field}: {reason.partition(' - at ')[0].replace('`', '')}")


def _unquote(text: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError as error:
        raise bad_request("the path is not valid UTF-8") from error


def _failure(error: ApiError, reference: str | None = None) -> Answer:
    body: dict[str, Any] = {"error": error.message, "code": error.code, "retryable": error.retryable}
    if reference is not None:
        body["requestId"] = reference
    headers = ((b"retry-after", str(error.retry_after).encode()),) if error.retry_after is not None else ()
    return Answer(error.status, _encode(body), headers=headers)


async def _preflight(_: Any, __: Call) -> Answer:
    return Answer(
        204,
        headers=(
            (b"access-control-allow-methods", b"GET, POST, PUT, DELETE, OPTIONS"),
            (b"access-control-allow-headers", b"*"),
            (b"access-control-max-age", b"86400"),
        ),
    )


_PREFLIGHT = _Match(Route("OPTIONS", "*", _preflight, "CORS preflight"), (), None)


async def _send(send: Send, answer: Answer) -> None:
    headers = _JSON_HEADERS
    if answer.content_type is not None:
        headers = ((b"content-type", answer.content_type), _JSON_HEADERS[1])
    if answer.status == 204:
        all_headers = [_JSON_HEADERS[1], *answer.headers]
    else:
        all_headers = [*headers, (b"content-length", str(len(answer.body)).encode()), *answer.headers]
    await send({"type": "http.response.start", "status": answer.status, "headers": all_headers})
    await send({"type": "http.response.body", "body": answer.body})
