"""`queenspark demo`: a minute from nothing to nothing, with windows in between."""

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.broker_process import clean_environment
from tests.processes import command, descendants, gone
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
    assert sum("  window  baskets ada " in line for line in lines) >= 4  # two groups, two windows
    assert any("  window  shop __GLOBAL__ " in line for line in lines)
    (pushed,) = (line.split()[1] for line in lines if line.startswith("pushed "))
    told = {line.split("  ")[0]: line for line in lines if " → " in line}
    assert set(told) == {"baskets → analytics", "baskets → mailer", "shop → analytics"}
    for line in told.values():
        assert f" {pushed} messages: every message once" in line
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("when", ["at once", "while PostgreSQL is made", "with Spark"])
def test_ctrl_c_on_a_terminal_ends_it_cleanly_at_any_time(folder: Path, when: str) -> None:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        DEMO, env=environment(folder), stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )
    os.close(slave)
    seen = b""
    wanted = b"starting Spark" if when == "with Spark" else b"Starting PostgreSQL"
    while wanted not in seen:
        seen += os.read(master, 65536)
    if when == "while PostgreSQL is made":  # by initdb, and by the servers that it runs for a moment
        eventually(lambda: any("--single" in command(pid) for pid in descendants(process.pid)), within=30)
    elif when == "with Spark":
        time.sleep(2)  # the JVM is on its way
    children = descendants(process.pid)
    process.send_signal(signal.SIGINT)
    while chunk := _read(master):
        seen += chunk
    os.close(master)
    assert process.wait(60) == 0, seen.decode(errors="replace")
    assert b"Traceback" not in seen
    assert b"\x1b[?1049l" in seen  # the terminal is as it was
    eventually(lambda: all(gone(pid) for pid in children), within=10)
    assert list(folder.iterdir()) == []


def _read(master: int) -> bytes:
    try:
        return os.read(master, 65536)
    except OSError:  # the other end is closed
        return b""
