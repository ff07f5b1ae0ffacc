"""The parent of a child process of `queenspark up`: the child ends with it."""

import os
import signal
import threading
import time
from typing import Annotated

import typer

#: How long a process may take to stop when its parent is gone.
ALONE_SECONDS = 30.0

ExitWithParent = Annotated[
    bool, typer.Option("--exit-with-parent", hidden=True, help="Stop when stdin ends.")
]


def stop_with_parent() -> None:
    """Terminate this process when stdin reaches EOF, which happens however the parent dies; do not wait."""
    threading.Thread(target=_stop_when_stdin_ends, daemon=True).start()


def _stop_when_stdin_ends() -> None:
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(ALONE_SECONDS)
    # The parent can no longer kill processes that do not exit on SIGTERM.
    os.killpg(os.getpid(), signal.SIGKILL)
