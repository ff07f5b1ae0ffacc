"""`make chaos`: runs a system under random faults, then verifies everything."""

import json
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from tests.chaos.run import Report, run

SEED = 15


def main(
    minutes: Annotated[float, typer.Option(help="Duration of the faults.")] = 10.0,
    seed: Annotated[int, typer.Option(help="The same seed repeats the same schedule of faults.")] = SEED,
    rate: Annotated[float, typer.Option(help="Messages a second.")] = 100.0,
    report: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Save the report here.")
    ] = None,
) -> None:
    """Run a system under random faults; verify that nothing is lost, duplicated or computed wrongly."""
    found = run(seed=seed, minutes=minutes, per_second=rate, log=tell)
    show(found)
    if report is not None:
        report.write_text(json.dumps(found.as_dict(), indent=2) + "\n")
    raise typer.Exit(0 if found.is_good else 1)


def tell(line: str) -> None:
    """Print a line and flush, so that long runs can be followed."""
    sys.stdout.write(f"{time.strftime('%H:%M:%S')}  {line}\n")
    sys.stdout.flush()


def show(report: Report) -> None:
    """Print the report."""
    tell(f"{sum(report.faults.values())} faults:")
    for kind, count in report.faults.items():
        tell(f"{count:6}  {kind}")
    for reason, count in report.skipped.items():
        tell(f"{count:6}  skipped: {reason}")
    tell(f"{report.restarts} starts and restarts")
    for name, count in report.figures.items():
        tell(f"{count:12,}  {name}")
    for sentence in report.wrong:
        tell(f"WRONG: {sentence}")
    tell("everything is exact" if report.is_good else "something is wrong")


if __name__ == "__main__":
    typer.run(main)
