"""`python -m bench`: the measurements and their options."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bench.drain import measure_drain
from bench.figure import Figure
from bench.latency import measure_latency
from bench.machine import Machine, running_machine
from bench.push import measure_push
from bench.report import save, show
from bench.wrk import NO_WRK, WrkError, has_wrk

SECONDS = 10.0
QUICK_SECONDS = 2.0
CANNOT_MEASURE = 2

MEASUREMENTS: dict[str, Callable[[Machine, float], list[Figure]]] = {
    "push-1": lambda machine, seconds: [measure_push(machine, 1, 50, seconds)],
    "push-100": lambda machine, seconds: [measure_push(machine, 100, 10, seconds)],
    "push-1000": lambda machine, seconds: [measure_push(machine, 1000, 4, seconds)],
    "pop-ack": lambda machine, seconds: [measure_drain(machine, seconds)],
    "latency": measure_latency,
}


WINDOWS = "windows"
"""The window engine: in a process of its own, with one thread for polars."""
STREAMS = "streams"
"""Windows over queues: with the broker and Spark in processes of their own."""
JOBS = "jobs"
"""SQL jobs over a queue: with the broker and Spark in processes of their own."""
FILES = "files"
"""SQL over files compared with plain Spark, in a process of its own."""
CLIENT = "client"
"""Windows and messages through the Python client: with it and the broker in processes of their own."""
NAMES = [*MEASUREMENTS, CLIENT, WINDOWS, STREAMS, JOBS, FILES]
NEED_WRK = {"push-1", "push-100", "push-1000", "pop-ack", STREAMS}


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Shorter and less exact.")] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=f"Only this one: {', '.join(NAMES)}."),
    ] = None,
    json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Save the figures here.")
    ] = None,
    profile: Annotated[bool, typer.Option("--profile", help="Show the cores used by each part.")] = False,
) -> None:
    """Measure this machine."""
    console = Console(stderr=True)
    chosen = only or NAMES
    unknown = set(chosen) - set(NAMES)
    if unknown:
        console.print(f"There is no measurement {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}.")
        raise typer.Exit(CANNOT_MEASURE)
    skipped = [] if has_wrk() else [name for name in chosen if name in NEED_WRK]
    chosen = [name for name in chosen if name not in skipped]
    if skipped:
        console.print(f"{NO_WRK}. Skipped: {', '.join(skipped)}.")
    if not chosen:
        raise typer.Exit(CANNOT_MEASURE)
    queue = [name for name in chosen if name in MEASUREMENTS]
    if queue:
        figures = _measure_queue(queue, QUICK_SECONDS if quick else SECONDS, console)
        show(figures, profile=profile)
        if json is not None:
            save(figures, json)
    if CLIENT in chosen:
        size = ["--messages", "40000"] if quick else []
        subprocess.run([sys.executable, "-m", "bench.client", *size], check=True)
    if WINDOWS in chosen:
        environment = {**os.environ, "POLARS_MAX_THREADS": "1"}
        subprocess.run([sys.executable, "-m", "bench.windows"], env=environment, check=True)
    if STREAMS in chosen:
        size = ["--messages", "400000", "--seconds", "5"] if quick else []
        subprocess.run([sys.executable, "-m", "bench.streams", *size], check=True)
    if JOBS in chosen:
        size = ["--messages", "400000", "--some", "100000"] if quick else []
        subprocess.run([sys.executable, "-m", "bench.jobs", *size], check=True)
    if FILES in chosen:
        size = ["--records", "400000"] if quick else []
        subprocess.run([sys.executable, "-m", "bench.files", *size], check=True)


def _measure_queue(names: list[str], seconds: float, console: Console) -> list[Figure]:
    figures: list[Figure] = []
    try:
        with running_machine() as machine:
            for name in names:
                with console.status(f"measuring {name}"):
                    machine.settle()
                    figures += MEASUREMENTS[name](machine, seconds)
    except WrkError as error:
        console.print(str(error))
        raise typer.Exit(CANNOT_MEASURE) from None
    return figures


if __name__ == "__main__":
    typer.run(bench)
