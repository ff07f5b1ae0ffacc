"""The login page: HTML without scripts."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from html import escape
from pathlib import Path

from starlette.responses import HTMLResponse

_STYLE = (Path(__file__).parent / "login.css").read_text()
_POLICY = (
    "default-src 'none'; style-src 'nonce-{nonce}'; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'"
)
_FORM = """<form method="post" action="/login" autocomplete="off">
<input type="hidden" name="next" value="{next}">
<label for="credential">API key or token</label>
<input id="credential" name="credential" type="password" required autofocus autocomplete="off">
<button>Log in</button></form>
<small>It is kept in memory only. Create a key with <code>queenspark keys create</code>.</small>"""
_RELOAD = '<meta http-equiv="refresh" content="2">'
_BACK = '<a href="/">Go to the overview</a>'
_OUT = '<form method="post" action="/logout"><button class="plain">Log out</button></form>'


def page(
    cookies: Mapping[str, str],
    title: str,
    problem: str = "",
    status: int = 200,
    *,
    after: str = "/",
    back: bool = False,
) -> HTMLResponse:
    """The login page, or with `back` a page with one sentence, in the colours that the user has chosen."""
    body = _BACK + _OUT if back else _FORM.format(next=escape(after, quote=True))
    return _page(cookies, title, problem, status, body)


def waiting_page(cookies: Mapping[str, str], problem: str, status: int = 200) -> HTMLResponse:
    """A page with one sentence that reloads itself until there is something to show."""
    return _page(cookies, "Waiting for the broker", problem, status, "", _RELOAD)


def _page(
    cookies: Mapping[str, str], title: str, problem: str, status: int, body: str, head: str = ""
) -> HTMLResponse:
    chosen = cookies.get("theme", "")
    theme = f' data-theme="{chosen}"' if chosen in ("light", "dark") else ""
    nonce = secrets.token_urlsafe(18)
    said = f'<p role="alert">{escape(problem)}</p>' if problem else ""
    return HTMLResponse(
        f'<!doctype html><html lang="en"{theme}><head><meta charset="utf-8">'
        f"<title>{title} · Queenspark</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'{head}<style nonce="{nonce}">{_STYLE}</style></head>'
        f"<body><main><h1>Queenspark</h1><h2>{title}</h2>{said}{body}</main></body></html>",
        status,
        {"content-security-policy": _POLICY.format(nonce=nonce), "cache-control": "no-store"},
    )
