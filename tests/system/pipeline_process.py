"""The pipeline as a process of its own, as the tests start, stop and kill it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

from tests.broker_process import clean_environment
from tests.processes import descendants, gone, program_of

LOG_LINES = 100


def send(number: signal.Signals, pids: Iterable[int]) -> bool:
    """Send a signal to those of these processes that are still there; return whether any is."""
    sent = False
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
            sent = True
    return sent


class PipelineProcess:
    """`queenspark pipeline` against a database, with a data folder of its own."""

    def __init__(
        self, database_url: str, folder: Path, *, source: Path | None = None, **settings: Any
    ) -> None:
        self.database_url = database_url
        self.folder = folder
        self.log_file = folder / "pipeline.log"
        chosen = {"spark_master": "local[2]", "spark_shuffle_partitions": 2, **settings}
        self._environment = clean_environment(source, database_url=database_url, data_dir=folder, **chosen)
        folder.mkdir(parents=True, exist_ok=True)
        self.process: subprocess.Popen[bytes]

    def start(self) -> None:
        """Start it; it leads when the database says so."""
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "queenspark", "pipeline"],
                env=self._environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait_until_leading(self, within: float = 120.0) -> None:
        """Wait until this process leads."""
        deadline = time.monotonic() + within
        while not self.leads():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the pipeline did not start:\n{self.log()}")
            time.sleep(0.1)

    def leads(self) -> bool:
        """Whether this process leads now."""
        with psycopg.connect(self.database_url) as connection:
            row = connection.execute(
                "SELECT holder FROM queenspark.pipeline WHERE expires_at > clock_timestamp()"
            ).fetchone()
        return row is not None and f":{self.process.pid}:" in row[0]

    @property
    def java(self) -> int:
        """The process id of Spark's JVM."""
        for pid in descendants(self.process.pid):
            if program_of(pid) == "java":
                return pid
        raise RuntimeError("there is no JVM")

    def kill(self) -> None:
        """Kill driver, JVM and workers, as a power cut would."""
        pids = [self.process.pid, *descendants(self.process.pid)]
        send(signal.SIGKILL, pids)
        self.process.wait()
        while not all(map(gone, pids)):
            time.sleep(0.01)

    def kill_java(self, within: float = 30.0) -> int:
        """Kill the JVM alone; the driver notices and exits; return its exit code."""
        return self._kill_alone(self.java, within)

    def kill_driver(self, within: float = 30.0) -> None:
        """Kill the driver alone; JVM and workers notice and end."""
        self._kill_alone(self.process.pid, within)

    def _kill_alone(self, pid: int, within: float) -> int:
        deadline = time.monotonic() + within
        pids = [self.process.pid, *descendants(self.process.pid)]
        os.kill(pid, signal.SIGKILL)
        code = self.process.wait(within)
        while left := [pid for pid in pids if not gone(pid)]:
            if time.monotonic() > deadline:
                raise RuntimeError(f"processes {left} did not end:\n{self.log()}")
            time.sleep(0.05)
        return code

    @property
    def checkpoint(self) -> Path:
        """Where the streams query keeps its state."""
        return self.folder / "checkpoint" / "streams"

    def stop(self, within: float = 60.0) -> None:
        """Stop it as an operator does."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(within)
            except subprocess.TimeoutExpired:
                self.kill()
                raise

    def log(self) -> str:
        """The end of its log."""
        lines = self.log_file.read_text(errors="replace").splitlines()
        return "\n".join(lines[-LOG_LINES:])
