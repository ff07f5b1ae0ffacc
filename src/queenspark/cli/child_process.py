"""Processes of `queenspark up`: children that end when their parent does."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from queenspark.cli.log_tail import last_line
from queenspark.settings import Settings, variable
from queenspark.signals import signals_wait


class ChildProcess:
    """A command of `queenspark`, with its log in the data folder."""

    name: str
    back: str
    steady_seconds: float
    #: Whether the system makes no sense without it.
    is_vital = True

    def __init__(self, command: str, settings: Settings, patience: float, **given: object) -> None:
        self.log_file = settings.data_dir.absolute() / f"{_LOGS.get(command, command)}.log"
        self._command = command
        self._patience = patience
        self._environment = {**os.environ, **{variable(name): str(value) for name, value in given.items()}}
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    def keep_temporary_files_in(self, folder: Path) -> None:
        """Set the temporary folder of the process and its children."""
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

    @property
    def exit_code(self) -> int | None:
        """The exit code of the process that ended; negative after a signal."""
        return None if self._process is None else self._process.poll()

    def spawn(self) -> None:
        """Start the process, after killing leftovers of an earlier one."""
        self._clear()
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        # stdin is how the child notices our end; a session of its own keeps Ctrl-C away from it.
        with self.log_file.open("ab") as log, signals_wait():
            self._log_start = log.tell()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "queenspark", self._command, "--exit-with-parent"],
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def stop(self) -> None:
        """Stop the process: gracefully, or by force after a timeout or if children remain."""
        if self._process is None:
            return
        if self.running:
            self._process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(self._patience)
        self._clear()

    def kill(self) -> None:
        """Kill the process and its children."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def ready(self) -> bool:
        """Whether the process does its work; here, whether it is alive."""
        return self.running

    def last_words(self) -> str:
        """The last line that it logged since its start."""
        return last_line(self.log_file, self._log_start)

    def _clear(self) -> None:
        """Kill the process and release its resources."""
        if self._process is None:
            return
        self.kill()
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()


_LOGS = {"serve": "broker"}
