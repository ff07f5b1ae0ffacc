"""Run the dashboard."""

from __future__ import annotations

import logging
import os
import socket
import sys

from nicegui import app, ui

from ..client import NotAllowed, Queen, QueenError
from ..loopback import is_loopback
from ..settings import Settings, without_userinfo
from ..tls import Certificate
from . import login, session
from .door import Door
from .frame import MARK


class StartError(Exception):
    """The dashboard cannot start; the message explains why and what to do."""


def run(settings: Settings) -> None:
    """Serve the pages until SIGTERM or Ctrl-C."""
    from . import pages

    logging.basicConfig(
        level="INFO", stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s", force=True
    )
    for noisy in ("httpx", "httpx2", "uvicorn.access"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    host, port = settings.ui_host, settings.ui_port
    # Each browser has the rights of its own user. The credential of this process must not be used.
    for name in ("QUEENSPARK_API_KEY", "QUEENSPARK_TOKEN"):
        os.environ.pop(name, None)
    is_local = is_loopback(host)
    may_be_open = settings.insecure or is_local
    if not may_be_open:
        _check_exposure(settings)
    certificate = _certificate(settings)
    _check_port(host, port)
    session.configure(
        session.Configuration(
            settings.url,
            settings.ca,
            60 * settings.ui_session_minutes,
            may_be_open,
            is_local,
            settings.ui_url,
        )
    )
    pages.register()
    login.register()
    app.add_middleware(Door)
    if certificate is not None:
        app.on_startup(certificate.keep_reading)
    app.on_shutdown(session.close)
    scheme = "http" if certificate is None else "https"
    broker = without_userinfo(settings.url)
    logging.getLogger("queenspark.ui").info(
        "dashboard for %s listening on %s://%s:%d", broker, scheme, host, port
    )
    ui.run(
        host=host,
        port=port,
        title="Queenspark",
        favicon=MARK.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ').replace(
            "currentColor", "#c98a0c"
        ),
        dark=None,
        reload=False,
        show=False,
        show_welcome_message=False,
        tailwind=False,
        binding_refresh_interval=None,
        reconnect_timeout=15.0,
        message_history_length=50,
        server_header=False,
        proxy_headers=False,  # a local client could claim another address for each of its failed logins
        ssl_context_factory=None if certificate is None else (lambda *_: certificate.context),
    )


def _check_exposure(settings: Settings) -> None:
    """Refuse to expose a broker without access control to the network."""
    try:
        with Queen(settings.url, timeout=5, retries=0, ca=settings.ca) as queen:
            is_closed = bool(queen.admin.request("GET", "me")["accessControl"])
    except NotAllowed:
        is_closed = True
    except QueenError:
        return  # no page is shown until the broker has responded
    if not is_closed:
        raise StartError(
            f"the broker at {without_userinfo(settings.url)} has no access control: listening on"
            f" {settings.ui_host} would give everyone who can reach port {settings.ui_port} full access; set"
            " QUEENSPARK_ACCESS_CONTROL=true for the broker (see docs/security.md), or pass --insecure"
        )


def _certificate(settings: Settings) -> Certificate | None:
    if settings.ui_tls_certificate is None or settings.ui_tls_key is None:
        return None
    try:
        return Certificate(settings.ui_tls_certificate, settings.ui_tls_key)
    except OSError as error:
        raise StartError(
            f"the certificate {settings.ui_tls_certificate} with the key {settings.ui_tls_key} cannot be"
            f" used: {error}"
        ) from error


def _check_port(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.create_server((host, port), family=family):
            pass
    except OSError as error:
        raise StartError(
            f"cannot listen on {host}:{port}: {error.strerror or error}; choose another with --port"
        ) from error
