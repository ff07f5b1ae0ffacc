"""Commands in processes forked from one with all imports done, which are half of the start of a broker."""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["queenspark.cli.app", "queenspark.broker.server", __name__])


class Forked:
    """A `queenspark` command with its own environment and log, with the methods of `subprocess.Popen`."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str], log_file: Path) -> None:
        self._arguments = ["queenspark", *arguments]
        # A daemon of the test process: it is ended with it.
        self._process = _FORKS.Process(
            target=_run, args=(self._arguments, dict(environment), log_file), daemon=True
        )
        self._process.start()

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code; negative after a signal."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """The exit code, if the process has ended."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; the exit code."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self._arguments, timeout or 0)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the process."""
        self.send_signal(signal.SIGKILL)


def _run(arguments: list[str], environment: dict[str, str], log_file: Path) -> None:
    from queenspark.cli import main

    os.environ.clear()
    os.environ.update(environment)
    with log_file.open("ab", buffering=0) as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    sys.argv = arguments
    main()
