"""Jobs whose history retention has removed: with the checkpoint lost, and while they were paused."""

import asyncio

import pytest

from queenspark.store.database import Database
from queenspark.store.sweeper import Sweeper
from tests.database import connect
from tests.jobs.system import Jobs
from tests.jobs.test_control import SCHEMA, STATEMENTS, create, everything, records


def sweep(jobs: Jobs, *, hold_seconds: float = 0) -> None:
    """Make all messages of the test's queue old, and let retention remove them."""
    with connect(jobs.database_url) as connection:
        connection.execute(
            "UPDATE queenspark.messages SET created_at = created_at - interval '100 s' WHERE queue_id ="
            " (SELECT id FROM queenspark.queues WHERE name = %s)",
            (jobs.name("q"),),
        )

    async def run() -> None:
        database = Database(jobs.database_url, pool_size=2)
        await database.open()
        try:
            await Sweeper(database, hold_seconds=hold_seconds).run()
        finally:
            await database.close()

    jobs.api.configure(jobs.name("q"), retentionSeconds=60, retentionEnabled=True)
    asyncio.run(run())


COUNTED = {
    # With the last 40 records only.
    "groups": "select user, count(*) as c from {s} group by user",
    "buffers": "select n, lag(n) over (rows window buffer 3 rows partition by user) as l from {s}",
    "counts": "select user, sum(n) as s, count(*) as c from {s} group by user window count(3)",
}


def test_a_lost_checkpoint_without_the_history_begins_a_new_version_and_says_so(jobs: Jobs) -> None:
    jobs.run(SCHEMA + ";".join(f"create stream {{{name}}} as {query}" for name, query in COUNTED.items()))
    jobs.run(f"create stream {{totals}} as {STATEMENTS['totals']}")
    jobs.push("q", records(0, 100))
    jobs.drain()
    before = {name: len(jobs.rows(name)) for name in COUNTED}
    sweep(jobs)
    jobs.pipeline.begin_again()
    jobs.drain()
    assert {name: len(jobs.rows(name)) for name in COUNTED} == before
    jobs.push("q", records(100, 40))
    jobs.drain()
    by_user: dict[str, list[int]] = {}
    for record in records(100, 40):
        by_user.setdefault(str(record["user"]), []).append(int(str(record["n"])))
    new = {
        name: sorted(
            str(row.data) for row in jobs.rows(name)[before[name] :] if row.headers["_version"] == "2"
        )
        for name in COUNTED
    }
    assert new["groups"] == sorted(
        str({"user": user, "c": number + 1})
        for user, found in by_user.items()
        for number in range(len(found))
    )
    assert new["buffers"] == sorted(
        str({"n": n, "l": found[at - 1] if at else None})
        for found in by_user.values()
        for at, n in enumerate(found)
    )
    assert new["counts"] == sorted(
        str({"user": user, "s": sum(found[at : at + 3]), "c": 3})
        for user, found in by_user.items()
        for at in range(0, len(found) - 2, 3)
    )
    for name in COUNTED:
        job = jobs.job(name)
        assert (job["version"], job["state"]) == (2, "running")
        assert jobs.name("q") in job["notice"]
        assert "checkpoint was lost" in job["notice"]
    assert (jobs.job("totals")["version"], jobs.job("totals")["notice"]) == (1, None)


def test_a_lost_checkpoint_with_the_history_keeps_the_version(jobs: Jobs) -> None:
    create(jobs, "groups", "buffers", "counts")
    jobs.push("q", records(0, 50))
    jobs.drain()
    before = everything(jobs, "groups", "buffers", "counts")
    jobs.pipeline.begin_again()
    jobs.drain()
    assert everything(jobs, "groups", "buffers", "counts") == before
    assert {jobs.job(name)["version"] for name in before} == {1}


def test_a_job_that_began_after_the_history_was_removed_keeps_its_version(jobs: Jobs) -> None:
    jobs.run(SCHEMA)
    jobs.push("q", records(0, 50))
    sweep(jobs)
    jobs.run(f"create stream {{groups}} as {STATEMENTS['groups']}")
    jobs.push("q", records(50, 50))
    jobs.drain()
    before = everything(jobs, "groups")
    assert len(before["groups"]) == 50
    jobs.pipeline.begin_again()
    jobs.drain()
    assert everything(jobs, "groups") == before
    assert jobs.job("groups")["version"] == 1


def test_a_second_lost_checkpoint_keeps_the_version_that_began_after_the_removal(jobs: Jobs) -> None:
    create(jobs, "groups")
    jobs.push("q", records(0, 50))
    jobs.drain()
    sweep(jobs)
    jobs.pipeline.begin_again()
    jobs.push("q", records(50, 50))
    jobs.drain()
    before = everything(jobs, "groups")
    jobs.pipeline.begin_again()
    jobs.drain()
    assert everything(jobs, "groups") == before
    assert jobs.job("groups")["version"] == 2


@pytest.mark.parametrize("stops", ["pause", "lag"])
def test_records_that_retention_removed_before_a_job_read_them_are_counted(jobs: Jobs, stops: str) -> None:
    create(jobs, "kept", "groups")
    jobs.push("q", records(0, 20))
    jobs.drain()
    if stops == "pause":
        jobs.run("pause job {kept}")
        jobs.push("q", records(20, 30))
        jobs.drain()
        missed = {"kept": 30, "groups": 0}
    else:
        jobs.push("q", records(20, 30))
        missed = {"kept": 30, "groups": 30}
    sweep(jobs, hold_seconds=3600)
    assert {name: jobs.job(name)["retention"]["removed"] for name in missed} == {"kept": 0, "groups": 0}
    sweep(jobs)
    assert {name: jobs.job(name)["retention"]["removed"] for name in missed} == missed
    (described,) = jobs.run("describe extended {kept}")
    assert described["details"]["removed"] == 30
    jobs.run("resume job {kept}")
    jobs.push("q", records(50, 2))
    jobs.drain()
    assert sorted(row["n"] for row in jobs.data("kept")) == [*range(0, 20, 2), 50]
