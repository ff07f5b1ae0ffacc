"""The broker of `queenspark up`."""

import os
import time

import httpx2

from queenspark.cli.child_process import ChildProcess
from queenspark.cli.exits import Exit, Failure
from queenspark.cli.ui_process import ui_address
from queenspark.settings import Settings

START_SECONDS = 60.0
CHECK_SECONDS = 0.05


class BrokerProcess(ChildProcess):
    """`queenspark serve`."""

    name = "The broker"
    back = "up again"
    steady_seconds = 10.0

    def __init__(self, settings: Settings, database_url: str) -> None:
        super().__init__(
            "serve",
            settings,
            settings.drain_seconds + 5.0,
            database_url=database_url,
            host=settings.host,
            port=settings.port,
            insecure=settings.insecure,
            ui_url=settings.ui_url if "QUEENSPARK_UI_URL" in os.environ else ui_address(settings),
        )
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)
        scheme = "http" if settings.tls_certificate is None else "https"
        self.url = f"{scheme}://{f'[{host}]' if ':' in host else host}:{settings.port}"
        # Certificates take long to load, and are not needed.
        self._client = httpx2.Client(base_url=self.url, trust_env=False, timeout=2.0, verify=False)

    def start(self) -> None:
        """Start the broker and wait until it is healthy."""
        self.spawn()
        deadline = time.monotonic() + START_SECONDS
        while not self.ready():
            if not self.running:
                words = self.last_words() or "The broker exited without a message."
                raise Failure(f"{words} (log: {self.log_file})", Exit.USAGE)
            if time.monotonic() > deadline:
                raise Failure(
                    f"The broker did not become healthy; check its log: {self.log_file}", Exit.USAGE
                )
            time.sleep(CHECK_SECONDS)

    def ready(self) -> bool:
        """Whether the broker reports that it is healthy."""
        try:
            return self._client.get("/health").status_code == httpx2.codes.OK
        except httpx2.TransportError:
            return False

    def stop(self) -> None:
        """Stop the broker gracefully, or by force when it takes too long."""
        super().stop()
        self._client.close()
