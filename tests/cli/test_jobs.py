"""`queenspark jobs`: list, show, pause, resume, restart, drop, dead."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.command import Command
from tests.wire.sql import Sql


@pytest.fixture
def job(sql: Sql) -> Iterator[str]:
    """A job over a queue."""
    name = f"job_{uuid4().hex[:10]}"
    sql(
        f"CREATE STREAM in_{name} (page STRING, ms BIGINT) WITH (queue = 'in_{name}');"
        f"CREATE STREAM {name} AS SELECT page, ms FROM in_{name}"
    )
    yield name
    sql(f"DROP STREAM in_{name} CASCADE")


def test_jobs_are_listed(queenspark: Command, sql: Sql, job: str) -> None:
    sql.fail(job, "it does not work")
    (line,) = [line for line in queenspark("jobs", "--search", job).out.splitlines() if line.startswith(job)]
    assert line.split()[1:3] == ["failed", "1"]
    assert line.endswith("it does not work")
    (shown,) = queenspark("jobs", "list", "--search", job, "--json").json()["jobs"]
    assert shown["state"] == "failed"
    assert "No jobs found" in queenspark("jobs", "list", "--search", job, "--namespace", "elsewhere").err


def test_a_list_of_jobs_has_pages(queenspark: Command, sql: Sql, job: str) -> None:
    sql(f"CREATE STREAM {job}_2 AS SELECT page FROM {job}")
    page = queenspark("jobs", "list", "--search", job, "--limit", "1", "--offset", "1", "--sort=-name")
    assert page.out.splitlines()[1].startswith(f"{job} ")
    assert "2 to 2 of 2" in page.err


def test_a_job_is_shown_with_its_statement_and_columns(queenspark: Command, job: str) -> None:
    shown = queenspark("jobs", "show", job).out
    assert f"CREATE STREAM {job} AS SELECT page, ms FROM in_{job}" in shown
    assert [line.split() for line in shown.splitlines()][-2:] == [["page", "string"], ["ms", "bigint"]]
    assert queenspark("jobs", "show", job, "--json").json()["rows"] == "append"
    missing = queenspark("jobs", "show", "no_such_job")
    assert missing.code == 1
    assert "no_such_job" in missing.err


def test_a_job_is_paused_resumed_and_restarted(queenspark: Command, sql: Sql, job: str) -> None:
    assert f"The job {job} is paused." in queenspark("jobs", "pause", job).err
    assert sql.job(job)["state"] == "paused"
    assert queenspark("jobs", "resume", job, "--json").json()["state"] == "running"
    sql.fail(job, "it does not work")
    assert f"The job {job} is running." in queenspark("jobs", "restart", job).err


def test_dropping_a_job_names_its_readers(queenspark: Command, sql: Sql, job: str) -> None:
    sql(f"CREATE STREAM {job}_2 AS SELECT page FROM {job}")
    refused = queenspark("jobs", "drop", job, "--yes")
    assert refused.code == 1
    assert f"is used by the job {job}_2" in refused.err
    assert "--cascade" in refused.err
    asked = queenspark("jobs", "drop", job, "--cascade")
    assert asked.code == 2
    assert f"Drop the job {job} with all its rows, and also {job}_2?" in asked.err
    assert sql.job(job)["state"] == "running"
    dropped = queenspark("jobs", "drop", job, "--cascade", "--yes")
    assert f"Dropped: {job}_2, {job}." in dropped.err
    assert queenspark("jobs", "drop", job, "--yes").code == 1


def test_dead_records_are_listed_with_their_reasons(queenspark: Command, sql: Sql, job: str) -> None:
    assert "no dead records" in queenspark("jobs", "dead", job).err
    assert queenspark("jobs", "dead", job, "--json").json() == {"dead": []}
    sql.run(
        "INSERT INTO queenspark.stream_dead (stream_id, version, key, txid, id, reason, start_us)"
        " VALUES (%s, 1, 'de', 1, 1, 'division by zero', NULL), (%s, 1, 'fr', 1, 2, 'overflow', 60000000)",
        sql.stream(job)[0], sql.stream(job)[0],
    )  # fmt: skip
    shown = queenspark("jobs", "dead", job).out.splitlines()
    assert len(shown) == 3
    (record,) = [line for line in shown if " de " in line]
    (row,) = [line for line in shown if " fr " in line]
    assert record.endswith("division by zero")
    assert "1970-01-01T00:01:00" in row
    page = queenspark("jobs", "dead", job, "--limit", "1", "--offset", "1", "--json").json()["dead"]
    assert len(page) == 1
    assert queenspark("jobs", "dead", "no_such_job").code == 1


def test_a_job_is_explained(queenspark: Command, sql: Sql, clicks: str) -> None:
    sql(
        f"CREATE STREAM {clicks}_job AS SELECT page, COUNT(*) AS n FROM {clicks}"
        " GROUP BY page WINDOW TUMBLING(1m)"
    )
    sql(f"PAUSE JOB {clicks}_job")
    lines = queenspark("jobs", "explain", f"{clicks}_job").out.splitlines()
    assert any(line.endswith(f"jobs resume {clicks}_job`.") for line in lines)
    response = queenspark("jobs", "explain", f"{clicks}_job", "--json").json()
    assert "paused" in [reason["code"] for reason in response["reasons"]]
