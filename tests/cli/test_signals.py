"""Signals that stop a command, before it has begun and while it must not be disturbed."""

import signal
import subprocess
import sys

from queenspark.signals import signals_wait


def test_signals_wait_until_a_process_that_is_being_started_is_known() -> None:
    came: list[str] = []
    before = signal.signal(signal.SIGTERM, lambda *_: came.append("the signal"))
    try:
        with signals_wait():
            signal.raise_signal(signal.SIGTERM)
            came.append("the process")
        assert came == ["the process", "the signal"]
        signal.raise_signal(signal.SIGTERM)
        assert came == ["the process", "the signal", "the signal"]
    finally:
        signal.signal(signal.SIGTERM, before)


INTERRUPTED = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
from queenspark.cli import main
main()
"""


def test_ctrl_c_while_a_command_is_loaded_leaves_no_trace() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
