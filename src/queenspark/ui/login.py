"""Log-in and log-out: an API key or a token for a session cookie."""

from __future__ import annotations

import logging
import re
from urllib.parse import parse_qs, quote

from nicegui import app
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ..client import NotAllowed, QueenError, RateLimited
from .attempts import Attempts
from .door import cookies_of, is_own_origin
from .login_page import page
from .session import COOKIES, sessions

log = logging.getLogger("queenspark.ui")

REASONS = {
    "refused": "Your key or token is no longer valid: it was revoked, or has expired. Log in with another.",
    "closed": "The broker needs an API key or a token now.",
    "idle": "You were logged out because nobody looked at a page for a while.",
    "out": "You are logged out.",
}
"""Why somebody is back at the login page; the URL has only the name, so no link can say anything else."""

_MOST_BYTES = 64 * 1024
_LOCAL = re.compile(r"/(?![/\\])[^\x00-\x20\\]*")

_attempts = Attempts()


def register() -> None:
    """Give log-in and log-out their paths."""
    app.add_route("/login", _show, methods=["GET"])
    app.add_route("/login", _log_in, methods=["POST"])
    app.add_route("/logout", _log_out, methods=["POST"])


def _wanted(text: str) -> str:
    """The page to go to after the log-in, which is one of ours."""
    return text if _LOCAL.fullmatch(text) and not text.startswith(("/login", "/logout")) else "/"


async def _show(request: Request) -> Response:
    after = _wanted(request.query_params.get("next", "/"))
    is_closed = await sessions.is_closed(ask=True)
    if is_closed is False and sessions.configuration.may_be_open:
        return RedirectResponse(after, 303)
    problem = REASONS.get(request.query_params.get("reason", ""), "")
    if is_closed is None:
        problem = f"The broker at {sessions.configuration.url} does not answer."
    return page("Log in", problem, after=after)


async def _log_in(request: Request) -> Response:
    headers = dict(request.headers)
    if not is_own_origin(headers):
        return page("Log in", "The form came from another site: log in here.", 403)
    form = parse_qs((await _body(request)).decode("utf-8", "replace"), max_num_fields=10)
    after = _wanted(form.get("next", ["/"])[0])
    credential = form.get("credential", [""])[0].strip()
    address = "unknown" if request.client is None else request.client.host
    if wait := _attempts.wait_seconds(address):
        answer = page("Log in", f"Too many log-ins have failed: try again in {wait} s.", 429, after=after)
        answer.headers["retry-after"] = str(wait)
        return answer
    try:
        id_ = await sessions.log_in(credential or "-")
    except RateLimited as error:
        return page("Log in", f"The broker says: {error}", 429, after=after)
    except NotAllowed as error:
        _attempts.note(address)
        log.warning("a log-in from %s failed: %s", address, error)
        return page("Log in", "The broker does not know this key or token.", 401, after=after)
    except QueenError as error:
        return page("Log in", str(error), 502, after=after)
    _attempts.forget(address)
    await sessions.log_out(cookies_of(headers))
    is_secure = request.url.scheme == "https"
    entered = RedirectResponse(quote(after, safe="/?&=%:,+-._~"), 303)
    entered.set_cookie(COOKIES[is_secure], id_, path="/", secure=is_secure, httponly=True, samesite="strict")
    return entered


async def _log_out(request: Request) -> Response:
    headers = dict(request.headers)
    if not is_own_origin(headers):
        return page("Log out", "The form came from another site.", 403, back=True)
    await sessions.log_out(cookies_of(headers))
    answer = RedirectResponse("/login?reason=out", 303)
    for is_secure, name in enumerate(COOKIES):
        answer.delete_cookie(name, path="/", secure=bool(is_secure), httponly=True, samesite="strict")
    return answer


async def _body(request: Request) -> bytes:
    found = b""
    async for part in request.stream():
        found += part
        if len(found) > _MOST_BYTES:
            return b""
    return found
