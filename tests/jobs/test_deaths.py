"""A job that kills its process is identified, and can be skipped."""

import multiprocessing
import os
import signal
from contextlib import closing

import pytest

from queenspark.pipeline.streams.care import Care, Coroner
from queenspark.store.errors import WorkerDied
from queenspark.store.pipeline import PipelineStore
from queenspark.store.steps import Steps
from tests.jobs.system import Jobs
from tests.jobs.test_control import create, records

_DIED = "Python worker exited unexpectedly (crashed)"


def die_within_step(url: str, stream: tuple[int, int]) -> None:
    """A worker killed by its job."""
    with Steps(url).noted(stream):
        os.kill(os.getpid(), signal.SIGKILL)


def die(jobs: Jobs, stream: tuple[int, int]) -> None:
    """Kill a process while it computes a job."""
    process = multiprocessing.get_context("spawn").Process(
        target=die_within_step, args=(jobs.database_url, stream)
    )
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL


def test_a_job_that_was_computed_when_two_workers_died_is_disabled(jobs: Jobs) -> None:
    create(jobs, "kept", "groups")
    jobs.push("q", records(0, 20))
    jobs.drain()
    stream = (jobs.sql.stream(jobs.name("groups"))[0], 1)
    with PipelineStore(jobs.database_url) as store:
        coroner = Coroner(store)
        assert not coroner.care(None).is_on
        assert coroner.care(_DIED).is_on
        die(jobs, stream)
        with closing(Steps(jobs.database_url)) as steps, pytest.raises(WorkerDied), steps.noted((1, 1)):
            raise AssertionError("nothing is computed before the death is noticed")
        assert not coroner.care(_DIED).disabled
        die(jobs, stream)
        care = coroner.care(_DIED)
    assert set(care.disabled) == {f"{stream[0]}:1"}
    jobs.push("q", records(20, 20))
    jobs.pipeline.be_careful(care)
    jobs.drain()
    jobs.pipeline.be_careful(Care())
    assert jobs.job("groups")["state"] == "failed"
    assert "2 Spark workers died" in jobs.job("groups")["lastError"]
    assert (len(jobs.rows("kept")), len(jobs.rows("groups"))) == (20, 20)
    jobs.run("restart job {groups}")
    jobs.drain()
    assert len(jobs.rows("groups")) == 40


def test_a_restarted_job_is_tried_again_by_the_same_run(jobs: Jobs) -> None:
    create(jobs, "groups")
    jobs.push("q", records(0, 20))
    name = f"{jobs.sql.stream(jobs.name('groups'))[0]}:1"
    with PipelineStore(jobs.database_url) as store:
        seq = store.latest_seq()
    jobs.pipeline.be_careful(Care(2.0**40, {name: (seq, "it is deadly")}))
    jobs.drain()
    assert jobs.job("groups")["lastError"] == "it is deadly"
    jobs.run("restart job {groups}")
    jobs.drain()
    jobs.pipeline.be_careful(Care())
    assert jobs.job("groups")["state"] == "running"
    assert len(jobs.rows("groups")) == 20


def test_a_careful_pipeline_gives_the_same_rows(jobs: Jobs) -> None:
    create(jobs)
    jobs.pipeline.be_careful(Care(2.0**40))
    for first in range(0, 90, 30):
        jobs.push("q", records(first, 30))
        jobs.drain()
    jobs.pipeline.be_careful(Care())
    assert len(jobs.rows("kept")) == 45
    assert len(jobs.rows("groups")) == len(jobs.rows("buffers")) == 90


def test_a_disabled_job_that_is_replaced_runs(jobs: Jobs) -> None:
    create(jobs, "groups", "kept")
    jobs.push("q", records(0, 20))
    jobs.drain()
    name = f"{jobs.sql.stream(jobs.name('groups'))[0]}:1"
    with PipelineStore(jobs.database_url) as store:
        seq = store.latest_seq()
    jobs.pipeline.be_careful(Care(2.0**40, {name: (seq, "it is deadly")}))
    jobs.push("q", records(20, 20))
    jobs.drain()
    assert jobs.job("groups")["lastError"] == "it is deadly"
    jobs.push("q", records(40, 20))
    jobs.drain()
    jobs.run(
        "create or replace stream {groups} as select user, min(n) as m from {s} where n <> 30 group by user"
    )
    jobs.drain()
    jobs.pipeline.be_careful(Care())
    assert jobs.job("groups")["lastError"] is None
    assert len(jobs.rows("groups")) == 59
