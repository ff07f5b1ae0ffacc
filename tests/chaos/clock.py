"""Runs a process with a wrong clock."""

import subprocess
from pathlib import Path
from shutil import which


def wrong_clock(folder: Path, seconds: int) -> dict[str, str]:
    """Return an environment that offsets a process's clock by `seconds`; empty without a C compiler."""
    compiler = which("cc")
    if compiler is None:
        return {}
    library = folder / "clock.so"
    source = Path(__file__).with_name("clock.c")
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        return {}
    return {"LD_PRELOAD": str(library), "CHAOS_CLOCK_SECONDS": str(seconds)}
