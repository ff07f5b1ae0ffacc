"""The supervisor: children that exit are restarted in order, with growing delays and a limit."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from queenspark.cli.exits import Exit, Failure
from queenspark.cli.supervisor import STARTS, Child, Supervisor
from tests.wire.deadline import eventually

LIVES = "exec sleep 600"
FAILS = "exit 3"


class Shell:
    """A child that runs a line of shell."""

    back = "up again"

    def __init__(self, name: str, line: str = LIVES, steady_seconds: float = 60.0) -> None:
        self.name = name
        self.line = line
        self.steady_seconds = steady_seconds
        self.is_ready = True
        self.starts: list[float] = []
        self.log_file = Path(f"/log/of/{name}")
        self._process: subprocess.Popen[bytes] | None = None
        self.spawn()

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        return None if self._process is None else self._process.poll()

    def spawn(self) -> None:
        self.starts.append(monotonic())
        self._process = subprocess.Popen(["sh", "-c", self.line])

    def ready(self) -> bool:
        return self.is_ready

    def last_words(self) -> str:
        return "nothing to do"

    def kill(self) -> None:
        """Kill the process, as a crash would."""
        assert self._process is not None
        if self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()


Made = list[Shell]


@pytest.fixture
def made() -> Iterator[Made]:
    """The children of the test, which end with it."""
    children: Made = []
    yield children
    for child in children:
        child.kill()


class Supervised:
    """A supervisor, and its messages."""

    def __init__(self, *children: Child, pauses: tuple[float, ...] = (0.05,) * (STARTS - 1)) -> None:
        self.told: list[str] = []
        self._supervisor = Supervisor(children, self._hear, pauses=pauses)

    def check(self) -> bool:
        self._supervisor.check()
        return True

    def until(self, sentence: str) -> None:
        """Supervise until something was told."""
        eventually(lambda: self.check() and self.told[-1:] == [sentence], within=20)

    def _hear(self, line: str) -> None:
        _, _, sentence = line.partition("  ")
        self.told.append(sentence)


def test_a_killed_child_is_restarted_and_each_step_is_reported(made: Made) -> None:
    made += [Shell("The broker")]
    supervised = Supervised(*made)
    supervised.check()
    assert supervised.told == []
    made[0].kill()
    supervised.until("The broker is up again.")
    assert supervised.told[0] == "The broker ended (killed by SIGKILL); restarting it in 0.05 s."
    assert made[0].running
    supervised.check()
    assert len(supervised.told) == 2


def test_it_is_up_again_when_it_does_its_work(made: Made) -> None:
    made += [Shell("The broker")]
    supervised = Supervised(*made)
    made[0].is_ready = False
    made[0].kill()
    eventually(lambda: supervised.check() and made[0].running)
    supervised.check()
    assert len(supervised.told) == 1
    made[0].is_ready = True
    supervised.until("The broker is up again.")


def test_a_child_that_fails_every_time_ends_it_after_growing_pauses(made: Made) -> None:
    made += [Shell("The broker", FAILS)]
    made[0].is_ready = False
    supervised = Supervised(*made, pauses=(0.1, 0.2, 0.4, 0.8))
    with pytest.raises(Failure) as given_up:
        eventually(lambda: supervised.check() and False, within=60)
    assert given_up.value.code == Exit.REFUSED
    assert str(given_up.value) == (
        f"The broker failed {STARTS} times in a row, each time within 60 s of its start: "
        "exit code 3: nothing to do (log: /log/of/The broker)"
    )
    assert supervised.told == [
        f"The broker ended (exit code 3: nothing to do); restarting it in {pause} s."
        for pause in ("0.1", "0.2", "0.4", "0.8")
    ]
    between = [later - earlier for earlier, later in zip(made[0].starts, made[0].starts[1:], strict=False)]
    assert [pause >= least for pause, least in zip(between, (0.1, 0.2, 0.4, 0.8), strict=True)] == [True] * 4


def test_a_child_that_ran_for_a_while_is_always_restarted(made: Made) -> None:
    made += [Shell("The pipeline", FAILS, steady_seconds=0.0)]
    supervised = Supervised(*made)
    eventually(lambda: supervised.check() and len(made[0].starts) > 2 * STARTS, within=60)


def test_a_child_waits_for_the_child_it_depends_on(made: Made) -> None:
    made += [Shell("PostgreSQL"), Shell("The broker")]
    postgres, broker = made
    supervised = Supervised(*made, pauses=(0.3,) * (STARTS - 1))
    broker.kill()
    postgres.kill()
    supervised.until("The broker is up again.")
    assert [sentence.split(" (")[0] for sentence in supervised.told] == [
        "PostgreSQL ended",
        "PostgreSQL is up again.",
        "The broker ended",
        "The broker is up again.",
    ]
    assert broker.starts[-1] > postgres.starts[-1]
