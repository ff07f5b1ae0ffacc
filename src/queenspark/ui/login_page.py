"""The login page: HTML without any script."""

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
<small>The dashboard keeps it in memory only. <code>queenspark keys create</code> makes keys.</small>"""
_BACK = '<a href="/">To the overview</a>'
_OUT = '<form method="post" action="/logout"><button class="plain">Log out</button></form>'


def page(
    title: str, problem: str = "", status: int = 200, *, after: str = "/", back: bool = False
) -> HTMLResponse:
    """The login page, or with `back` one that only says a sentence. It has no script."""
    nonce = secrets.token_urlsafe(18)
    said = f'<p role="alert">{escape(problem)}</p>' if problem else ""
    body = _BACK + _OUT if back else _FORM.format(next=escape(after, quote=True))
    return HTMLResponse(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title} · Queenspark</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<style nonce="{nonce}">{_STYLE}</style></head>'
        f"<body><main><h1>Queenspark</h1><h2>{title}</h2>{said}{body}</main></body></html>",
        status,
        {"content-security-policy": _POLICY.format(nonce=nonce), "cache-control": "no-store"},
    )
