"""Backends that outlive their postmaster, and keep its shared memory in use."""

import os
import signal
from contextlib import suppress
from pathlib import Path

PROCESSES = Path("/proc")


def end_orphans(cluster: Path) -> None:
    """Make the processes of a dead postmaster quit at once; for a cluster that has no living one.

    Most notice by themselves. One that computes does not, for as long as its query takes.
    Where there is no /proc, they are left to it.
    """
    folder = cluster.resolve()
    for entry in PROCESSES.glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile, or is somebody else's
            if (entry / "cwd").readlink() == folder and (entry / "exe").readlink().name == "postgres":
                os.kill(int(entry.name), signal.SIGQUIT)
