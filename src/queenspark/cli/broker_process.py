"""The broker of `queenspark up`: a child process that ends when its parent does."""

import os
import signal
import subprocess
import sys
import time

import httpx2

from queenspark.cli.exits import Exit, Failure
from queenspark.settings import Settings, variable

START_SECONDS = 60.0
LOOK_SECONDS = 0.05


class BrokerProcess:
    """`queenspark serve`, with its log in the data folder."""

    def __init__(self, settings: Settings, database_url: str) -> None:
        self.log_file = settings.data_dir.absolute() / "broker.log"
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)
        self.url = f"http://[{host}]:{settings.port}" if ":" in host else f"http://{host}:{settings.port}"
        self._patience = settings.drain_seconds + 5.0
        given = {"database_url": database_url, "host": settings.host, "port": settings.port}
        self._environment = {**os.environ, **{variable(name): str(value) for name, value in given.items()}}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        """Whether the broker is alive."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the broker and wait until it is healthy."""
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        with self.log_file.open("ab") as log:
            # stdin is how the child notices our end; a session of its own keeps Ctrl-C away from it.
            self._process = subprocess.Popen(
                [sys.executable, "-m", "queenspark", "serve", "--exit-with-parent"],
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_SECONDS
        with httpx2.Client(trust_env=False, timeout=2.0) as client:
            while not self._healthy(client):
                if not self.running:
                    raise Failure(f"{self._last_words()} (log: {self.log_file})", Exit.USAGE)
                if time.monotonic() > deadline:
                    raise Failure(f"The broker did not become healthy; its log: {self.log_file}", Exit.USAGE)
                time.sleep(LOOK_SECONDS)

    def stop(self) -> None:
        """Stop the broker: gracefully, or by force when it takes longer than it may."""
        if self._process is None:
            return
        if self.running:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(self._patience)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()

    def kill(self) -> None:
        """End the broker at once."""
        if self._process is not None:
            self._process.kill()

    def _healthy(self, client: httpx2.Client) -> bool:
        try:
            return client.get(f"{self.url}/health").status_code == httpx2.codes.OK
        except httpx2.TransportError:
            return False

    def _last_words(self) -> str:
        lines = [line for line in self.log_file.read_text(errors="replace").splitlines() if line.strip()]
        return lines[-1] if lines else "The broker ended without a word."
