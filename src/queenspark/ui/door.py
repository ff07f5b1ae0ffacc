"""Middleware: checks the rights of the user for each page, and adds security headers to every response."""

from __future__ import annotations

import secrets
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, quote, urlsplit

from nicegui import Client
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .login_page import page, waiting_page
from .session import Session, id_of, sessions

#: The right that each page requires; pages without one are for every logged-in user.
RIGHTS = {
    "/streams": "stream:read",
    "/stream": "stream:read",
    "/queues": "queue:read",
    "/queue": "queue:read",
    "/groups": "queue:read",
    "/group": "queue:read",
    "/dead-letters": "queue:read",
    "/jobs": "job:read",
    "/job": "job:read",
    "/sql": "sql:run",
    "/system": "system:admin",
    "/keys": "access:admin",
    "/audit": "access:admin",
}

_FREE = ("/login", "/favicon.ico")
_SOCKET = "/_nicegui_ws"
_OPEN = (
    "The dashboard listens on a public address, but its broker has no access control: everyone who"
    " can reach it would have full access. Set QUEENSPARK_ACCESS_CONTROL=true for the broker, or start the"
    " dashboard with --insecure.\n"
)
_FOREIGN = (
    "The dashboard listens on loopback only, and this is not one of its names. Open it as localhost; behind a"
    " proxy, set QUEENSPARK_UI_URL to its URL there.\n"
)
_AWAY = "The broker does not respond, so it is unknown whether it requires a login. Retrying."
# A link from another site comes without the cookie (SameSite=Strict); a reload from this page sends it.
_AGAIN = '<!doctype html><meta http-equiv="refresh" content="0"><title>Queenspark</title>'

_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
# NiceGUI needs more than 'self' and the nonce of each response:
# - script-src 'unsafe-eval': Vue compiles templates in the browser, and evaluates the server's calls;
# - style-src 'unsafe-inline': Vue and Quasar set style attributes, and NiceGUI adds style elements;
# - img-src and font-src data:, because Quasar's style sheets carry small images and icons.
_POLICY = (
    "default-src 'none'; script-src 'self' 'nonce-{nonce}' 'unsafe-eval'; style-src 'self' 'unsafe-inline';"
    " img-src 'self' data:; font-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'"
)
_MOST_HTML = 32 * 1024 * 1024


class Door:
    """ASGI middleware that redirects to the login page and adds headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        refusal = await _refusal(scope)
        if scope["type"] == "websocket":
            if refusal is None:
                await self._app(scope, receive, send)
            else:
                await receive()
                await send({"type": "websocket.close", "code": 1008})
            return
        guarded = _Guarded(send)
        await (refusal or self._app)(scope, receive, guarded)


async def _refusal(scope: Scope) -> Response | None:
    """Return the response that refuses a request, or None to let it pass."""
    path: str = scope["path"]
    if path in _FREE or path.startswith("/_nicegui/"):
        return None
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    if path.startswith(_SOCKET) and not is_own_origin(headers):
        return PlainTextResponse("pages of other sites may not connect", 403)
    cookies = cookies_of(headers)
    is_closed = await sessions.is_closed()
    if is_closed is None:
        return waiting_page(cookies, _AWAY, 503)
    if not is_closed:
        if not sessions.configuration.may_be_open:
            return PlainTextResponse(_OPEN, 503)
        # With a login the session's cookie decides: browsers do not send it to another name.
        is_ours = sessions.configuration.accepts_host(headers.get("host", ""))
        return None if is_ours else PlainTextResponse(_FOREIGN, 403)
    await sessions.sweep()
    session = sessions.find(cookies)
    if session is None:
        return _to_login(scope, headers)
    if path.startswith(_SOCKET):
        return (
            None if _is_own_page(scope, cookies) else PlainTextResponse("not the page of this session", 403)
        )
    session.touch()
    return _lacking(path, session, cookies)


def _to_login(scope: Scope, headers: dict[str, str]) -> Response:
    if scope["type"] == "websocket" or scope["method"] != "GET" or scope["path"].startswith(_SOCKET):
        return PlainTextResponse("log in first", 401)
    if headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") == "navigate":
        return HTMLResponse(_AGAIN, headers={"cache-control": "no-store"})
    where = scope["path"] + (f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else "")
    return RedirectResponse("/login" if where == "/" else f"/login?next={quote(where, safe='')}", 303)


def _lacking(path: str, session: Session, cookies: dict[str, str]) -> Response | None:
    right = RIGHTS.get(path)
    if right is None or session.can(right):
        return None
    return page(cookies, "No access", f"{session.lacks(right)}.", 403, back=True)


def _is_own_page(scope: Scope, cookies: dict[str, str]) -> bool:
    """Whether a socket belongs to a page of the same session."""
    given = parse_qs(scope["query_string"].decode("latin-1")).get("client_id", [""])[0]
    client = Client.instances.get(given)
    if client is None or client.request is None:
        return client is None  # NiceGUI refuses it, and the browser loads the page again
    return id_of(dict(client.request.cookies)) == id_of(cookies)


def cookies_of(headers: dict[str, str]) -> dict[str, str]:
    """Return the cookies of a request."""
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(headers.get("cookie", "")).items()}
    except CookieError:
        return {}


def is_own_origin(headers: dict[str, str]) -> bool:
    """Whether the browser sent a request from a page of the dashboard."""
    if (site := headers.get("sec-fetch-site")) is not None:
        return site == "same-origin"
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc == headers.get("host")


class _Guarded:
    """Adds security headers to a response, and to a page the nonce that lets its scripts run."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._html = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers: list[tuple[bytes, bytes]] = list(message["headers"])
            given = {name.lower() for name, _ in headers}
            headers += [
                (name.encode(), value.encode())
                for name, value in _HEADERS.items()
                if name.encode() not in given
            ]
            kind = next((value for name, value in headers if name.lower() == b"content-type"), b"")
            message = {**message, "headers": headers}
            if kind.startswith(b"text/html") and b"content-security-policy" not in given:
                self._start = message
                return
            if b"content-security-policy" not in given:
                headers.append((b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"))
        elif self._start is not None and len(self._html) < _MOST_HTML:
            self._html += message.get("body", b"")
            if message.get("more_body"):
                return
            await self._send_page(self._start)
            return
        await self._send(message)

    async def _send_page(self, start: Message) -> None:
        nonce = secrets.token_urlsafe(18)
        # NiceGUI escapes each < in data, so only its template and our own pages have script elements.
        html = self._html.replace(b"<script", f'<script nonce="{nonce}"'.encode())
        headers = [pair for pair in start["headers"] if pair[0].lower() != b"content-length"]
        headers += [
            (b"content-length", str(len(html)).encode()),
            (b"content-security-policy", _POLICY.format(nonce=nonce).encode()),
        ]
        self._start = None
        await self._send({**start, "headers": headers})
        await self._send({"type": "http.response.body", "body": html})
