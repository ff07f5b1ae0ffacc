"""Log in with an API key or token, which starts a session, and log out."""

from __future__ import annotations

import logging
import re
from urllib.parse import parse_qs, quote

from nicegui import app
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ..client import NotAllowed, QueenError, RateLimited
from ..failed_logins import FailedLogins
from .door import cookies_of, is_own_origin
from .login_page import page, waiting_page
from .session import COOKIES, sessions

log = logging.getLogger("queenspark.ui")

REASONS = {
    "refused": "Your key or token was revoked or has expired. Log in with another one.",
    "closed": "The broker requires an API key or a token.",
    "idle": "You were logged out because no page was open for a while.",
    "out": "You are logged out.",
}
"""Why a user is back at the login page. The URL has only the key, so a link cannot show other text."""

_MOST_BYTES = 64 * 1024
_LOCAL = re.compile(r"/(?![/\\])[^\x00-\x20\\]*")

FREE_FAILURES = 4
"""Failed logins of an address that cost nothing; fewer than a broker allows, which sees one address for all
browsers."""

_failures = FailedLogins(FREE_FAILURES, longest_seconds=300, forgiven_seconds=900)


def register() -> None:
    """Register the routes."""
    app.add_route("/login", _show, methods=["GET"])
    app.add_route("/login", _log_in, methods=["POST"])
    app.add_route("/logout", _log_out, methods=["POST"])


def _wanted(text: str) -> str:
    """Return the page to open after the login, which must be one of the dashboard."""
    return text if _LOCAL.fullmatch(text) and not text.startswith(("/login", "/logout")) else "/"


async def _show(request: Request) -> Response:
    after = _wanted(request.query_params.get("next", "/"))
    is_closed = await sessions.is_closed(ask=True)
    if is_closed is False and sessions.configuration.may_be_open:
        return RedirectResponse(after, 303)
    if is_closed is None:
        return waiting_page(
            request.cookies, f"The broker at {sessions.everybody.url} does not respond. Retrying."
        )
    return page(
        request.cookies, "Log in", REASONS.get(request.query_params.get("reason", ""), ""), after=after
    )


async def _log_in(request: Request) -> Response:
    headers = dict(request.headers)
    if not is_own_origin(headers):
        return page(request.cookies, "Log in", "The form was sent from another site. Log in here.", 403)
    form = parse_qs((await _body(request)).decode("utf-8", "replace"), max_num_fields=10)
    after = _wanted(form.get("next", ["/"])[0])
    credential = form.get("credential", [""])[0].strip()
    address = "unknown" if request.client is None else request.client.host
    if wait := _failures.wait_seconds(address):
        response = page(
            request.cookies, "Log in", f"Too many failed logins. Try again in {wait} s.", 429, after=after
        )
        response.headers["retry-after"] = str(wait)
        return response
    try:
        id_ = await sessions.log_in(credential or "-")
    except RateLimited as error:
        return page(request.cookies, "Log in", f"The broker rejected the login: {error}", 429, after=after)
    except NotAllowed as error:
        _failures.add(address)
        log.warning("a login from %s failed: %s", address, error)
        return page(request.cookies, "Log in", "Unknown key or token.", 401, after=after)
    except QueenError as error:
        return page(request.cookies, "Log in", str(error), 502, after=after)
    _failures.clear(address)
    await sessions.log_out(cookies_of(headers))
    # Behind a proxy with TLS, only the browser knows.
    is_secure = request.url.scheme == "https" or headers.get("origin", "").startswith("https://")
    entered = RedirectResponse(quote(after, safe="/?&=%:,+-._~"), 303)
    entered.set_cookie(COOKIES[is_secure], id_, path="/", secure=is_secure, httponly=True, samesite="strict")
    return entered


async def _log_out(request: Request) -> Response:
    headers = dict(request.headers)
    if not is_own_origin(headers):
        return page(request.cookies, "Log out", "The form was sent from another site.", 403, back=True)
    await sessions.log_out(cookies_of(headers))
    response = RedirectResponse("/login?reason=out", 303)
    for is_secure, name in enumerate(COOKIES):
        response.delete_cookie(name, path="/", secure=bool(is_secure), httponly=True, samesite="strict")
    return response


async def _body(request: Request) -> bytes:
    found = b""
    async for part in request.stream():
        found += part
        if len(found) > _MOST_BYTES:
            return b""
    return found
