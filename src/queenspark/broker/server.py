"""Run a broker until it is stopped."""

from __future__ import annotations

import asyncio
import logging
import resource
import signal
import socket
import sys
from contextlib import suppress
from types import FrameType

import uvicorn
import uvloop

from ..loopback import is_loopback
from ..settings import Settings, SettingsError
from ..signals import on_stop
from ..store.errors import DatabaseUnavailable, StoreError
from ..store.migrate import migrate
from ..tls import Certificate
from .app import application
from .broker import Broker
from .protocol import Protocol

log = logging.getLogger("queenspark.broker")


class StartError(Exception):
    """The broker cannot start; the message is one sentence for people."""


def check_exposure(settings: Settings) -> None:
    """Refuse to expose an open broker to the network."""
    if settings.is_closed or settings.insecure or is_loopback(settings.host):
        return
    raise StartError(
        f"listening on {settings.host} without access control would give everyone who can reach"
        f" port {settings.port} full access: set QUEENSPARK_ACCESS_CONTROL=true (see docs/security.md),"
        " or pass --insecure"
    )


class _Server(uvicorn.Server):
    """A uvicorn server that ends parked polls before it waits for connections."""

    def __init__(self, config: uvicorn.Config, broker: Broker) -> None:
        super().__init__(config)
        self._broker = broker

    async def on_tick(self, counter: int) -> bool:
        """Close stalled connections, once a second."""
        if counter % 10 == 0:
            now = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                if isinstance(connection, Protocol):
                    connection.give_up(now, self._broker.settings.request_seconds)
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # Uvicorn's own handler would re-raise the signal at the end, before our cleanup.
        log.info("stopping: finishing requests in flight")
        self._broker.parking.close()
        self._broker.followers.close()
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def run(settings: Settings) -> int:
    """Migrate, listen and serve; returns the exit code after SIGINT or SIGTERM."""
    if settings.database_url is None:
        raise StartError(
            "QUEENSPARK_DATABASE_URL is not set: set it to a PostgreSQL URL, or use `queenspark up`"
        )
    check_exposure(settings)
    logging.basicConfig(
        level=settings.log_level.upper(), stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s"
    )
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)
    _allow_connections()
    certificate = _certificate(settings)
    listener = _listen(settings.host, settings.port)
    try:
        for name in migrate(settings.database_url):
            log.info("migrated: %s", name)
    except StoreError as error:
        raise StartError(str(error).strip().splitlines()[0]) from error
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(settings, listener, certificate))
    return 0


def _allow_connections() -> None:
    """Raise the limit of open files to its maximum; the default of 1,024 is soon reached."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise StartError(
            f"cannot listen on {host}:{port}: {error.strerror or error}; choose another with --port"
        ) from error


def _certificate(settings: Settings) -> Certificate | None:
    if settings.tls_certificate is None or settings.tls_key is None:
        return None
    try:
        return Certificate(settings.tls_certificate, settings.tls_key, settings.tls_client_ca)
    except OSError as error:
        raise StartError(
            f"the certificate {settings.tls_certificate} with the key {settings.tls_key} cannot be used:"
            f" {error}"
        ) from error


async def _serve(settings: Settings, listener: socket.socket, certificate: Certificate | None) -> None:
    try:
        broker = Broker(settings)
    except SettingsError as error:
        raise StartError(str(error)) from error
    try:
        await broker.start()
    except DatabaseUnavailable as error:
        raise StartError(str(error)) from error
    config = uvicorn.Config(
        application(broker),
        log_config=None,
        access_log=False,
        lifespan="off",
        http=Protocol,
        proxy_headers=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=max(1, round(settings.drain_seconds)),
        server_header=False,
        date_header=False,
        ssl_context_factory=None if certificate is None else (lambda *_: certificate.context),
    )
    if certificate is not None:
        broker.background(certificate.keep_reading())
    scheme = "http" if certificate is None else "https"
    log.info("listening on %s://%s:%d", scheme, *listener.getsockname()[:2])
    server = _Server(config, broker)
    on_stop(server.handle_exit)  # while serving, uvicorn handles SIGINT and SIGTERM, but not SIGHUP
    try:
        await server.serve(sockets=[listener])
    finally:
        await broker.stop()
