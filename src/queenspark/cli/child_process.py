"""Processes of `queenspark up`: children that end when their parent does."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from queenspark.settings import Settings, variable
from queenspark.signals import signals_wait


class ChildProcess:
    """A command of `queenspark`, with its log in the data folder."""

    def __init__(self, command: str, settings: Settings, patience: float, **given: object) -> None:
        self.log_file = settings.data_dir.absolute() / f"{_LOGS.get(command, command)}.log"
        self._command = command
        self._patience = patience
        self._environment = {**os.environ, **{variable(name): str(value) for name, value in given.items()}}
        self._process: subprocess.Popen[bytes] | None = None

    def keep_temporary_files_in(self, folder: Path) -> None:
        """Let the process, and what it starts, put temporary files there and nowhere else."""
        self._environment["TMPDIR"] = str(folder)

    @property
    def running(self) -> bool:
        """Whether the process is alive."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None
        return self._process.pid

    def spawn(self) -> None:
        """Start the process."""
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        # stdin is how the child notices our end; a session of its own keeps Ctrl-C away from it.
        with self.log_file.open("ab") as log, signals_wait():
            self._process = subprocess.Popen(
                [sys.executable, "-m", "queenspark", self._command, "--exit-with-parent"],
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def stop(self) -> None:
        """Stop the process: gracefully, or by force when it takes longer than it may or leaves something."""
        if self._process is None:
            return
        if self.running:
            self._process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(self._patience)
        self.kill()
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()

    def kill(self) -> None:
        """End the process at once, and what it has started."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def last_words(self) -> str:
        """The last line of its log."""
        lines = [line for line in self.log_file.read_text(errors="replace").splitlines() if line.strip()]
        return lines[-1] if lines else f"`queenspark {self._command}` ended without a word."


_LOGS = {"serve": "broker"}
