"""Jobs that failed in one bucket only and are replaced: every row is there once."""

from collections import Counter
from typing import Any

import polars as pl
import pytest

from queenspark.sql.running.records import RecordStage, Taken
from queenspark.sql.running.rows import Given, RowStage
from tests.jobs.system import Jobs
from tests.jobs.test_control import SCHEMA, STATEMENTS, records

REPLACED = {
    "totals": "select user, sum(n) as s, count(*) as c, max(n) as m from {s} group by user"
    " window tumbling(at, 10s)",
    "changes": "select user, sum(n) as s, max(n) as m from {s} group by user window tumbling(at, 10s)"
    " emit changes",
    "groups": "select user, max(n) as m, min(n) as l from {s} group by user",
    "buffers": "select n, lag(n) over (rows window buffer 3 rows partition by user) as l, n + 1 as m"
    " from {s}",
    "counts": "select user, sum(n) as s, max(n) as m from {s} group by user window count(3)",
}


def fail_in_second_bucket(jobs: Jobs, patch: pytest.MonkeyPatch) -> None:
    """Make each job fail at the second call of its last stage."""
    calls: Counter[int] = Counter()

    def failing(name: str) -> None:
        original = getattr(RowStage, name)

        def stage(self: RowStage, frame: pl.DataFrame) -> Given:
            stream = int(self._id.partition(":")[0])
            calls[stream] += 1
            if calls[stream] == 2:
                raise RuntimeError("no such luck")
            given: Given = original(self, frame)
            return given

        patch.setattr(RowStage, name, stage)

    failing("of_windows")
    failing("of_buffers")


def rows_of(jobs: Jobs, name: str) -> Counter[tuple[Any, ...]]:
    """The values that both versions of a job have."""
    columns = {"totals": "usc", "changes": "us", "groups": "um", "buffers": "nl", "counts": "us"}[name]
    return Counter(
        (row.partition, *(value for column, value in row.data.items() if column[0] in columns))
        for row in jobs.rows(name)
    )


def begin(jobs: Jobs) -> None:
    jobs.begin()
    jobs.run(SCHEMA + ";".join(f"create stream {{{name}}} as {STATEMENTS[name]}" for name in REPLACED))
    jobs.push("q", records(0, 60))
    jobs.drain()


def replace(jobs: Jobs) -> None:
    jobs.run(
        ";".join(f"create or replace stream {{{name}}} as {select}" for name, select in REPLACED.items())
    )


@pytest.fixture
def expected(jobs: Jobs) -> dict[str, Counter[tuple[Any, ...]]]:
    """The rows of jobs that do not fail."""
    begin(jobs)
    jobs.push("q", records(60, 60))
    jobs.push("q", records(120, 60))
    jobs.drain()
    found = {name: rows_of(jobs, name) for name in REPLACED}
    jobs.run(";".join(f"drop stream {{{name}}}" for name in REPLACED))
    return found


def test_a_job_that_failed_in_one_bucket_and_is_replaced_gives_each_row_once(
    jobs: Jobs, expected: dict[str, Counter[tuple[Any, ...]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(jobs)
    with monkeypatch.context() as patch:
        fail_in_second_bucket(jobs, patch)
        jobs.push("q", records(60, 60))
        jobs.drain()
    assert {jobs.job(name)["state"] for name in REPLACED} == {"failed"}
    replace(jobs)
    jobs.push("q", records(120, 60))
    jobs.drain()
    assert {jobs.job(name)["state"] for name in REPLACED} == {"running"}
    assert {name: rows_of(jobs, name) for name in REPLACED} == expected


def test_a_replacement_that_fails_itself_is_replaced_without_a_row_twice(
    jobs: Jobs, expected: dict[str, Counter[tuple[Any, ...]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(jobs)
    with monkeypatch.context() as patch:
        fail_in_second_bucket(jobs, patch)
        jobs.push("q", records(60, 60))
        jobs.drain()
    replace(jobs)

    def failing(self: RecordStage, messages: pl.DataFrame) -> Taken:
        raise RuntimeError("no such luck again")

    with monkeypatch.context() as patch:
        patch.setattr(RecordStage, "run", failing)
        jobs.drain()
    assert {jobs.job(name)["lastError"] for name in REPLACED} == {"RuntimeError: no such luck again"}
    for name, select in REPLACED.items():
        jobs.run(f"create or replace stream {{{name}}} as {select.replace(' from', ', 1 as one from', 1)}")
    jobs.push("q", records(120, 60))
    jobs.drain()
    assert {(jobs.job(name)["state"], jobs.job(name)["version"]) for name in REPLACED} == {("running", 3)}
    assert {name: rows_of(jobs, name) for name in REPLACED} == expected


def test_a_job_that_cannot_be_planned_is_replaced_and_gives_each_row_once(jobs: Jobs) -> None:
    jobs.run(SCHEMA + "create stream {kept} as select n from {s}")
    jobs.push("q", records(0, 20))
    jobs.drain()
    jobs.sql.make_unplannable(jobs.name("kept"), "SELECT gone(n) AS n FROM s")
    jobs.run("pause job {kept}; resume job {kept}")  # the pipeline keeps definitions that it has read
    jobs.push("q", records(20, 20))
    jobs.drain()
    assert "cannot be planned" in jobs.job("kept")["lastError"]
    jobs.run("create or replace stream {kept} as select n, user from {s}")
    jobs.push("q", records(40, 20))
    jobs.drain()
    assert (jobs.job("kept")["state"], jobs.job("kept")["version"]) == ("running", 2)
    assert Counter(row["n"] for row in jobs.data("kept")) == Counter(row["n"] for row in records(0, 60))
