"""Keeps the processes of `queenspark up` running."""

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from queenspark.cli.exits import Failure

#: How many starts in a row may fail, and the pauses before those after the first.
STARTS = 5
PAUSES = (0.5, 1.0, 2.0, 4.0)


_SIGNALS = {each.value: each.name for each in signal.Signals}


class Child(Protocol):
    """A process that is kept running."""

    #: "The broker", "PostgreSQL"
    name: str
    #: Its state after a restart, for messages: "up again"
    back: str
    #: A start has failed when the process ends sooner than this.
    steady_seconds: float

    @property
    def log_file(self) -> Path:
        """Where it logs."""

    @property
    def running(self) -> bool:
        """Whether the process is alive."""

    @property
    def exit_code(self) -> int | None:
        """The exit code of the process that ended; negative after a signal, None when none was started."""

    def spawn(self) -> None:
        """Start the process; when that fails, it is not running and `last_words` says why."""

    def ready(self) -> bool:
        """Whether the restarted process is `back`."""

    def last_words(self) -> str:
        """Why it ended, if it logged a reason."""


class Supervisor:
    """Restarts children that exit, with growing delays.

    `children` are running, and in the order in which they need each other: while one is down, those after
    it are not restarted. `tell` is called with each exit and each restart.
    """

    def __init__(
        self,
        children: Sequence[Child],
        tell: Callable[[str], object],
        *,
        pauses: Sequence[float] = PAUSES,
    ) -> None:
        self._watches = [_Watch(child) for child in children]
        self._tell = tell
        self._pauses = pauses

    def check(self) -> None:
        """Restart children whose pause is over; raises `Failure` after too many failed starts."""
        for watch in self._watches:
            if watch.is_given_up:
                continue
            if watch.child.running:
                self._notice_return(watch)
                continue
            if watch.due_at is None:
                self._notice_end(watch)
            elif time.monotonic() >= watch.due_at:
                watch.restart()
            return

    def _notice_end(self, watch: "_Watch") -> None:
        child = watch.child
        watch.failures = watch.failures + 1 if watch.age < child.steady_seconds else 0
        if watch.failures == STARTS and not getattr(child, "is_vital", True):
            watch.is_given_up = True
            self._say(
                f"{child.name} failed {STARTS} times in a row and is not restarted again: {_ending(child)}"
            )
            return
        if watch.failures == STARTS:
            raise Failure(
                f"{child.name} failed {STARTS} times in a row, each time within {child.steady_seconds:g} s "
                f"of its start: {_ending(child)} (log: {child.log_file})"
            )
        pause = self._pauses[max(0, watch.failures - 1)]
        watch.due_at = time.monotonic() + pause
        self._say(f"{child.name} ended ({_ending(child)}); restarting it in {pause:g} s.")

    def _notice_return(self, watch: "_Watch") -> None:
        if watch.is_returning and watch.child.ready():
            watch.is_returning = False
            self._say(f"{watch.child.name} is {watch.child.back}.")

    def _say(self, sentence: str) -> None:
        self._tell(f"{time.strftime('%H:%M:%S')}  {sentence}")


@dataclass
class _Watch:
    """The supervisor's state of one child."""

    child: Child
    started_at: float = field(default_factory=time.monotonic)
    failures: int = 0  # starts in a row
    due_at: float | None = None
    is_returning: bool = False
    is_given_up: bool = False

    @property
    def age(self) -> float:
        """How long ago the last start was."""
        return time.monotonic() - self.started_at

    def restart(self) -> None:
        """Start the child again."""
        self.due_at = None
        self.is_returning = True
        self.child.spawn()
        self.started_at = time.monotonic()


def _ending(child: Child) -> str:
    """How a child ended: "killed by SIGKILL", "exit code 2: cannot listen on 127.0.0.1:6632"."""
    code, words = child.exit_code, child.last_words()
    if code is None:
        return words
    if code < 0:
        return f"killed by {_SIGNALS.get(-code, f'signal {-code}')}"
    return f"exit code {code}" + (f": {words}" if words else "")
