"""`queenspark demo`: a minute from nothing to nothing, with windows in between."""

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker_process import clean_environment
from tests.processes import arguments_of, descendants, gone, program_of
from tests.wire.deadline import eventually

pytestmark = [pytest.mark.timeout(300)]

DEMO = [sys.executable, "-m", "queenspark", "demo", "--seconds", "10"]


def environment(folder: Path) -> dict[str, str]:
    """The demo's folder is made in here, so that a test sees whether it goes away."""
    return {
        **clean_environment(),
        "TMPDIR": str(folder),
        "TERM": "xterm-256color",
        "COLUMNS": "110",
        "LINES": "40",
    }


def test_without_a_terminal_it_prints_lines_and_a_true_summary(folder: Path) -> None:
    done = subprocess.run(
        DEMO, env=environment(folder), capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    lines = done.stdout.splitlines()
    assert any(line.startswith("Watch it live in a browser: http://127.0.0.1:") for line in lines)
    assert sum("  window  baskets ada " in line for line in lines) >= 4  # two groups, two windows
    assert any("  window  shop __GLOBAL__ " in line for line in lines)
    (pushed,) = (line.split()[1] for line in lines if line.startswith("pushed "))
    told = {line.split("  ")[0]: line for line in lines if " → " in line}
    assert set(told) == {"baskets → analytics", "baskets → mailer", "shop → analytics"}
    for line in told.values():
        assert f" {pushed} messages: each message exactly once" in line
    assert list(folder.iterdir()) == []


class OnTerminal:
    """A demo on a terminal of its own."""

    def __init__(self, folder: Path) -> None:
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            DEMO, env=environment(folder), stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        os.close(slave)
        self.seen = b""

    def wait_for(self, text: bytes) -> None:
        """Wait until it is on the screen."""
        while text not in self.seen:
            more = self._read()
            assert more, self.seen.decode(errors="replace")
            self.seen += more

    def read_all(self) -> None:
        """Read until the demo has left the terminal."""
        while more := self._read():
            self.seen += more

    def close(self) -> None:
        """The terminal goes away."""
        os.close(self._master)

    def _read(self) -> bytes:
        try:
            return os.read(self._master, 65536)
        except OSError:  # the other end is closed
            return b""


@pytest.fixture
def demo(folder: Path) -> Iterator[OnTerminal]:
    """A demo; its remaining processes are killed when the test fails."""
    running = OnTerminal(folder)
    yield running
    for pid in [running.process.pid, *descendants(running.process.pid)]:
        if not gone(pid):
            os.kill(pid, signal.SIGKILL)
    running.process.wait()


WHEN = [
    "at once",
    "while PostgreSQL is made",
    pytest.param("with Spark", marks=pytest.mark.long),
    pytest.param("with Spark, impatiently", marks=pytest.mark.long),
]


@pytest.mark.parametrize("when", WHEN)
def test_ctrl_c_on_a_terminal_ends_it_cleanly_at_any_time(demo: OnTerminal, folder: Path, when: str) -> None:
    demo.wait_for(b"starting Spark" if "with Spark" in when else b"Starting PostgreSQL")
    if when == "while PostgreSQL is made":  # by initdb, and by the servers that it runs for a moment
        made = "queenspark-demo-*/data/postgres"  # it may be over before the first check
        eventually(lambda: is_being_made(demo.process.pid) or [*folder.glob(made)], within=30)
    elif "with Spark" in when:
        eventually(lambda: "java" in map(program_of, descendants(demo.process.pid)), within=60)
    children = descendants(demo.process.pid)
    demo.process.send_signal(signal.SIGINT)
    if "impatiently" in when:
        time.sleep(0.3)
        demo.process.send_signal(signal.SIGINT)
    demo.read_all()
    demo.close()
    assert demo.process.wait(60) == 0, demo.seen.decode(errors="replace")
    assert b"Traceback" not in demo.seen
    assert b"\x1b[?1049l" in demo.seen  # the terminal is as it was
    eventually(lambda: all(gone(pid) for pid in children), within=10)
    assert list(folder.iterdir()) == []


def test_it_ends_cleanly_when_its_terminal_goes(demo: OnTerminal, folder: Path) -> None:
    demo.wait_for(b"Starting the broker")
    children = descendants(demo.process.pid)
    demo.close()
    demo.process.send_signal(signal.SIGHUP)
    assert demo.process.wait(60) == 0
    eventually(lambda: all(gone(pid) for pid in children), within=10)
    assert list(folder.iterdir()) == []


def is_being_made(demo: int) -> bool:
    """Whether one of the servers runs that initdb needs."""
    return any({"--boot", "--single"} & set(arguments_of(pid)) for pid in descendants(demo))
