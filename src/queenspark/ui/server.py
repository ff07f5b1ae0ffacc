"""Run the dashboard until it is told to stop."""

from __future__ import annotations

import logging
import socket
import sys

from nicegui import app, ui

from . import session
from .frame import MARK


class StartError(Exception):
    """The dashboard cannot start; the message is one sentence for people."""


def run(broker_url: str, host: str, port: int) -> None:
    """Serve the pages until SIGTERM or Ctrl-C."""
    from . import pages

    logging.basicConfig(
        level="INFO", stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s", force=True
    )
    for noisy in ("httpx", "httpx2", "uvicorn.access"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    _check_port(host, port)
    session.configure(broker_url)
    pages.register()
    app.on_shutdown(session.close)
    logging.getLogger("queenspark.ui").info("dashboard of %s on http://%s:%d", broker_url, host, port)
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
    )


def _check_port(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.create_server((host, port), family=family):
            pass
    except OSError as error:
        raise StartError(
            f"cannot listen on {host}:{port}: {error.strerror or error}; choose another with --port"
        ) from error
