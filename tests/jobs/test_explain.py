"""`GET /api/v1/jobs/:name/explain`: why the next window of a job is not sealed, or no row comes."""

from collections.abc import Iterator

import pytest

from tests.conftest import StartBroker
from tests.jobs.system import Jobs
from tests.leader import LEAD
from tests.wire.api import Json
from tests.wire.document import Document
from tests.wire.sql import FAILURE

COUNTS = (
    "CREATE STREAM {counts} AS SELECT country, COUNT(*) AS n FROM {orders} WHERE amount > 1 GROUP BY country"
)


@pytest.fixture(scope="module")
def running(module_broker: StartBroker) -> Iterator[Jobs]:
    own = module_broker()
    found = Jobs(own.url, own.database_url)
    found.api.http.event_hooks = {"response": [Document(found.api.read("/openapi.json")).check]}
    found.sql.run(LEAD)
    yield found
    found.close()


@pytest.fixture
def jobs(running: Jobs) -> Jobs:
    """Jobs with unique names, and a queue with two orders; one passes the filter."""
    running.begin()
    running.push("orders", [{"country": "DE", "amount": 1, "at": "2026-01-31T12:00:10Z"}])
    running.push("orders", [{"country": "FR", "amount": 5, "at": "2026-01-31T12:00:20Z"}])
    return running


def explain(jobs: Jobs, name: str = "counts") -> Json:
    return jobs.api.read(f"/api/v1/jobs/{jobs.name(name)}/explain")


def codes(jobs: Jobs, name: str = "counts") -> list[str]:
    return [reason["code"] for reason in explain(jobs, name)["reasons"]]


def test_a_missing_job_is_404(jobs: Jobs) -> None:
    assert jobs.api.get("/api/v1/jobs/none/explain").status_code == 404


def test_the_next_window_has_the_key_and_the_time_of_the_statement(jobs: Jobs) -> None:
    jobs.run(f"{COUNTS} WINDOW TUMBLING(CAST(at AS TIMESTAMP), 1m) WITH (grace = '5s', idle_timeout = '1h')")
    jobs.drain()
    response = explain(jobs)
    assert (response["job"], response["namespace"]) == (jobs.name("counts"), "default")
    assert [reason["code"] for reason in response["reasons"]] == ["watermark"]
    found = response["next"]
    assert (found["key"], found["start"], found["end"], found["records"]) == (
        "FR", "2026-01-31T12:00:00.000Z", "2026-01-31T12:01:00.000Z", 1,
    )  # fmt: skip
    assert found["newestTime"] == "2026-01-31T12:00:20.000Z"


def test_a_paused_job_says_so(jobs: Jobs) -> None:
    jobs.run(f"{COUNTS} WINDOW TUMBLING(1h)")
    jobs.drain()
    assert codes(jobs) == ["grace"]
    jobs.run("PAUSE JOB {counts}")
    jobs.drain()
    response = explain(jobs)
    assert [reason["code"] for reason in response["reasons"]] == ["paused", "grace"]
    assert response["reasons"][0]["since"] is not None
    assert response["reasons"][0]["fix"] == f"resume it with `queenspark jobs resume {jobs.name('counts')}`"
    jobs.run("RESUME JOB {counts}")
    jobs.drain()
    assert codes(jobs) == ["grace"]


def test_a_failed_job_shows_its_error(jobs: Jobs) -> None:
    jobs.run(f"{COUNTS} WINDOW TUMBLING(1h)")
    jobs.drain()
    stream_id, _, _ = jobs.sql.stream(jobs.name("counts"))
    jobs.sql.run(FAILURE, 0, 1, 1, "out of order", stream_id)
    reason = explain(jobs)["reasons"][0]
    assert (reason["code"], reason["text"]) == ("failed", "the job has failed: out of order")
    assert reason["since"] is not None
    assert "jobs restart" in reason["fix"]


def test_a_full_output_queue_is_named(jobs: Jobs) -> None:
    jobs.run("CREATE STREAM {all} AS SELECT country FROM {orders}")
    jobs.drain()
    jobs.api.configure(jobs.name("all"), maxSize=2)
    reason = explain(jobs, "all")["reasons"][0]
    assert (reason["code"], reason["text"]) == (
        "output_full", f"the queue {jobs.name('all')} is full: maxSize is 2 and 2 rows are unconsumed",
    )  # fmt: skip


def test_nothing_passes_the_condition(jobs: Jobs) -> None:
    jobs.run(f"{COUNTS.replace('> 1', '> 99')} WINDOW TUMBLING(1h)")
    jobs.drain()
    (reason,) = explain(jobs)["reasons"]
    assert reason["code"] == "no_records"
    assert reason["text"].endswith("or do not match the condition of its statement")


@pytest.mark.parametrize("more", ["", " WINDOW TUMBLING(1h) EMIT CHANGES"])
def test_a_job_without_sealed_windows_gives_rows_with_each_record(jobs: Jobs, more: str) -> None:
    jobs.run(f"{COUNTS}{more}")
    jobs.drain()
    response = explain(jobs)
    assert response["next"] is None
    assert [reason["code"] for reason in response["reasons"]] == ["no_windows"]
    assert response["sealed"]["windows"] == 1


def test_the_open_windows_of_a_job_that_was_put_back_are_found(jobs: Jobs) -> None:
    jobs.run(f"{COUNTS} WINDOW COUNT(5)")
    jobs.drain()
    stream_id, _, version = jobs.sql.stream(jobs.name("counts"))
    jobs.sql.run(FAILURE, 0, 1, 1, "out of order", stream_id)
    jobs.sql.run(
        "UPDATE queenspark.progress SET state = jsonb_set(state, ARRAY['behind', %s], '[0, 0, 0]')",
        f"{stream_id}:{version}",
    )
    response = explain(jobs)
    assert response["reasons"][0]["code"] == "failed"
    assert "retention" not in codes(jobs)
    assert (response["next"]["key"], response["next"]["records"]) == ("FR", 1)
