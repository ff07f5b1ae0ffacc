"""The login page: HTML without scripts."""

from __future__ import annotations

import secrets
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
    title: str, problem: str = "", status: int = 200, *, after: str = "/", back: bool = False
) -> HTMLResponse:
    """The login page, or with `back` a page with one sentence."""
    return _page(
        title, problem, status, _BACK + _OUT if back else _FORM.format(next=escape(after, quote=True))
    )


def waiting_page(problem: str, status: int = 200) -> HTMLResponse:
    """A page with one sentence that reloads itself until there is something to show."""
    return _page("Waiting for the broker", problem, status, "", _RELOAD)


def _page(title: str, problem: str, status: int, body: str, head: str = "") -> HTMLResponse:
    nonce = secrets.token_urlsafe(18)
    said = f'<p role="alert">{escape(problem)}</p>' if problem else ""
    return HTMLResponse(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title} · Queenspark</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'{head}<style nonce="{nonce}">{_STYLE}</style></head>'
        f"<body><main><h1>Queenspark</h1><h2>{title}</h2>{said}{body}</main></body></html>",
        status,
        {"content-security-policy": _POLICY.format(nonce=nonce), "cache-control": "no-store"},
    )
