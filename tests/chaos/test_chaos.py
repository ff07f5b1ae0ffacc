"""A few minutes of faults; use `make chaos` for longer runs."""

import sys

import pytest

from tests.chaos.faults import EARLY
from tests.chaos.plan import ESSENTIAL, missing, plan
from tests.chaos.run import run

SEED = 15
MINUTES = 3


def test_the_plan_has_faults_of_every_essential_kind_that_are_never_skipped() -> None:
    """Late pipeline faults are skipped on a slow machine: one has to be early."""
    planned = plan(SEED, MINUTES * 60)
    certain = [
        fault.kind for fault in planned if fault.kind not in ESSENTIAL["pipeline"] or fault.choice < EARLY
    ]
    assert missing(certain) == []
    assert missing(["kill broker", "cut link: broker to PostgreSQL"]) == ["pipeline", "PostgreSQL"]


@pytest.mark.long
@pytest.mark.crash
@pytest.mark.timeout(1800)
def test_nothing_is_lost_doubled_or_wrong_after_minutes_of_faults() -> None:
    report = run(seed=SEED, minutes=MINUTES, per_second=100, log=print_line)
    assert report.wrong == []
    assert missing(report.faults) == []
    assert sum(report.faults.values()) > 15
    assert report.figures["messages"] > 5_000


def print_line(line: str) -> None:
    """Print a line for the log of a failed test."""
    sys.stdout.write(f"{line}\n")
