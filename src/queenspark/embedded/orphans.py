"""Orphaned backends, which keep the shared memory of their dead postmaster in use."""

import os
import signal
from contextlib import suppress
from pathlib import Path

PROCESSES = Path("/proc")


def end_orphans(cluster: Path) -> None:
    """Make the backends of a dead postmaster quit; only for a cluster without a living one.

    Most of them exit by themselves, but not while a query is computing. Without /proc they are left alone.
    """
    folder = cluster.resolve()
    for entry in PROCESSES.glob("[0-9]*"):
        with suppress(OSError):  # already ended, or owned by another user
            if (entry / "cwd").readlink() == folder and (entry / "exe").readlink().name == "postgres":
                os.kill(int(entry.name), signal.SIGQUIT)
