"""A few minutes of faults; use `make chaos` for longer runs."""

import sys

import pytest

from tests.chaos.run import run

SEED = 15


@pytest.mark.long
@pytest.mark.crash
@pytest.mark.timeout(1800)
def test_nothing_is_lost_doubled_or_wrong_after_minutes_of_faults() -> None:
    report = run(seed=SEED, minutes=3, per_second=100, log=print_line)
    assert report.wrong == []
    assert sum(report.faults.values()) > 15
    assert report.figures["messages"] > 5_000


def print_line(line: str) -> None:
    """Print a line for the log of a failed test."""
    sys.stdout.write(f"{line}\n")
