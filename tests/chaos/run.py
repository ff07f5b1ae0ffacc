"""A run: starts the system, injects faults, lets it settle, and verifies the result."""

import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg

from tests.chaos import verdict as judge
from tests.chaos.disk import Disk
from tests.chaos.faults import Faults
from tests.chaos.fleet import DISK_MEGABYTES, WRONG_CLOCK_SECONDS, Fleet
from tests.chaos.load import GROUPS, JOBS, QUEUES, RELAY, WINDOW_GROUPS, define
from tests.chaos.plan import plan
from tests.chaos.verdict import Verdict, unacked
from tests.system.load import wait_until
from tests.system.system import System
from tests.wire.api import Api

START_SECONDS = 180.0
SETTLE_SECONDS = 900.0
PROGRESS_SECONDS = 60.0
MESSAGES_OF_A_KEY = 200
Log = Callable[[str], None]

COUNTS = """SELECT
    count(*) FILTER (WHERE q.name = ANY (%s)), count(*) FILTER (WHERE q.name LIKE 'windows:%%'),
    count(*) FILTER (WHERE q.name = ANY (%s))
FROM queenspark.messages m JOIN queenspark.queues q ON q.id = m.queue_id"""


@dataclass
class Report:
    """The result of a run."""

    seed: int
    minutes: float
    began: str
    machine: str
    took_seconds: float
    faults: dict[str, int]
    skipped: dict[str, int]
    restarts: int
    figures: dict[str, int]
    wrong: list[str]

    @property
    def is_good(self) -> bool:
        """Whether the run had no error."""
        return not self.wrong

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON-compatible values."""
        return {**asdict(self), "verdict": "exact" if self.is_good else "wrong"}


def run(*, seed: int, minutes: float, per_second: float, log: Log) -> Report:
    """Run once. The folder with all logs and ledgers is kept if something is wrong."""
    began = time.monotonic()
    started = datetime.now(UTC).isoformat(timespec="seconds")
    folder = Path(tempfile.mkdtemp(prefix="queenspark-chaos-"))
    log(f"seed {seed}, {minutes:g} minutes, {per_second:g} messages a second; logs and ledgers in {folder}")
    chosen = plan(seed, minutes * 60)
    for fault in chosen:
        log(f"planned {fault}")
    keys = max(50, int(per_second * minutes * 60 / 2 / MESSAGES_OF_A_KEY))
    verdict = Verdict()
    with (
        Disk(DISK_MEGABYTES) as disk,
        Fleet(folder, disk, seed=seed, per_second=per_second, keys=keys) as fleet,
    ):
        if fleet.is_skewed:
            log(f"the clock of {fleet.brokers[1].name} is {WRONG_CLOCK_SECONDS} s ahead")
        fleet.add(*fleet.brokers, *fleet.pipelines)
        fleet.wait_until_healthy(START_SECONDS)
        with Api(fleet.url, fleet.database_url) as api:
            system = System(api, fleet.database_url, fleet.pipelines[0].own)
            streams = define(system)
            fleet.add(*fleet.producers, *fleet.consumers)
            progress = Progress(fleet, system, log)
            if not wait_until(lambda: progress.counts()[1] > 0, within=START_SECONDS):
                raise RuntimeError(f"no window was sealed; see {folder}")
            log("the faults begin")
            faults = Faults(fleet, log)
            faults.run(chosen, progress.check)
            log("the faults are over")
            fleet.wait_until_healthy(START_SECONDS)
            (folder / "stop-producers").touch()
            if not wait_until(lambda: not any(each.is_running() for each in fleet.producers), within=120):
                verdict.wrong.append("producers could not finish their pushes")
            progress.check()
            pushed, payloads = judge.pushed(folder)
            windows = {stream.name: judge.expected_windows(system, stream) for stream in streams}
            records = judge.clicks(system)
            rows = {job: judge.expected_rows(job, records) for job in JOBS if job != "chained"}
            log("waiting for the last windows, rows and deliveries")
            wanted = sum(map(len, windows.values())), sum(found.total() for found in rows.values())

            def everything_is_there() -> bool:
                progress.check()
                _, sealed, given = progress.counts()
                return sealed >= wanted[0] and given >= wanted[1] and is_consumed() and not unacked(system)

            def is_consumed() -> bool:
                sizes = {queue: sum(map(len, pushed[queue].values())) for queue in QUEUES}
                complete = judge.is_complete
                return (
                    all(complete(folder, group, queue, "messages", sizes[queue]) for group, queue in GROUPS)
                    and complete(folder, *RELAY, "relay", sizes[RELAY[1]])
                    and all(
                        complete(folder, group, name, "windows", len(windows[name]))
                        for group, name in WINDOW_GROUPS
                    )
                )

            if not wait_until(everything_is_there, within=SETTLE_SECONDS, every=5.0):
                log("some windows, rows or deliveries did not arrive in time")
            time.sleep(5)  # time for duplicates to arrive
            (folder / "stop-consumers").touch()
            wait_until(lambda: not any(each.is_running() for each in fleet.consumers), within=60)
            log("judging")
            judge.judge_log(system, verdict, pushed, payloads)
            judge.judge_groups(system, verdict, folder, pushed)
            for stream in streams:
                judge.judge_stream(system, verdict, folder, stream, windows[stream.name])
            judge.judge_jobs(system, verdict, rows)
            verdict.true("groups with unacknowledged deliveries", unacked(system))
            verdict.true("streams and jobs that failed", failures(system))
    report = Report(
        seed, minutes, started, f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        round(time.monotonic() - began, 1), dict(sorted(faults.happened.items())), dict(faults.skipped),
        fleet.restarts, verdict.figures, verdict.wrong,
    )  # fmt: skip
    shutil.rmtree(disk.folder, ignore_errors=True)
    if report.is_good:
        shutil.rmtree(folder, ignore_errors=True)
    return report


class Progress:
    """Logs progress every minute, and aborts the run if a client fails."""

    def __init__(self, fleet: Fleet, system: System, log: Log) -> None:
        self._fleet = fleet
        self._system = system
        self._log = log
        self._due = time.monotonic() + PROGRESS_SECONDS

    def counts(self) -> tuple[int, int, int]:
        """Return messages, windows and rows so far; zeros while PostgreSQL is down."""
        names = [job for job in JOBS if job != "chained"]
        with suppress(psycopg.Error):
            ((messages, windows, rows),) = self._system.run(COUNTS, list(QUEUES), names)
            return messages, windows, rows
        return 0, 0, 0

    def check(self) -> None:
        """Raise if a client has failed on its own."""
        for client in (*self._fleet.producers, *self._fleet.consumers):
            if any(code > 0 for code in client.exits):
                raise RuntimeError(f"{client.name} failed:\n{client.log()}")
        if time.monotonic() > self._due:
            self._due = time.monotonic() + PROGRESS_SECONDS
            messages, windows, rows = self.counts()
            self._log(f"{messages:,} messages, {windows:,} windows, {rows:,} rows")


def failures(system: System) -> list[Any]:
    """Return the failed streams and jobs."""
    return system.run(
        "SELECT s.name, f.error FROM queenspark.stream_failures f"
        " JOIN queenspark.streams s ON s.id = f.stream_id"
    )
