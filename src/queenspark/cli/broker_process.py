"""The broker of `queenspark up`."""

import time

import httpx2

from queenspark.cli.child_process import ChildProcess
from queenspark.cli.exits import Exit, Failure
from queenspark.settings import Settings

START_SECONDS = 60.0
LOOK_SECONDS = 0.05


class BrokerProcess(ChildProcess):
    """`queenspark serve`."""

    def __init__(self, settings: Settings, database_url: str) -> None:
        super().__init__(
            "serve",
            settings,
            settings.drain_seconds + 5.0,
            database_url=database_url,
            host=settings.host,
            port=settings.port,
        )
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)
        self.url = f"http://[{host}]:{settings.port}" if ":" in host else f"http://{host}:{settings.port}"

    def start(self) -> None:
        """Start the broker and wait until it is healthy."""
        self.spawn()
        deadline = time.monotonic() + START_SECONDS
        with httpx2.Client(trust_env=False, timeout=2.0) as client:
            while not self._healthy(client):
                if not self.running:
                    raise Failure(f"{self.last_words()} (log: {self.log_file})", Exit.USAGE)
                if time.monotonic() > deadline:
                    raise Failure(f"The broker did not become healthy; its log: {self.log_file}", Exit.USAGE)
                time.sleep(LOOK_SECONDS)

    def _healthy(self, client: httpx2.Client) -> bool:
        try:
            return client.get(f"{self.url}/health").status_code == httpx2.codes.OK
        except httpx2.TransportError:
            return False
