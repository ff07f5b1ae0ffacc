"""The load generator: wrk with our scripts, which report their counts at the end."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).with_name("lua")
MARK = "@"
GRACE_SECONDS = 60


class WrkError(RuntimeError):
    """wrk is missing, or failed."""


NO_WRK = "wrk, the load generator, is not installed; on Debian: apt-get install wrk"


def has_wrk() -> bool:
    """Whether wrk is installed."""
    return shutil.which("wrk") is not None


def run_wrk(
    script: str, url: str, *arguments: object, threads: int, connections: int, seconds: float
) -> dict[str, Any]:
    """Run a script of `bench/lua` for `seconds`; return its report."""
    command = ["wrk", f"-t{threads}", f"-c{connections}", f"-d{max(1, round(seconds))}s", "--timeout", "30s"]
    command += ["--latency", "-s", str(SCRIPTS / f"{script}.lua"), url, "--", *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=seconds + GRACE_SECONDS, check=False
    )
    for line in done.stdout.splitlines():
        if line.startswith(MARK):
            report: dict[str, Any] = json.loads(line[len(MARK) :])
            return report
    raise WrkError(f"wrk failed ({done.returncode}): {done.stdout[-500:]}{done.stderr[-500:]}")
