"""Jobs that are paused, fail, wait, are replaced, or lose their pipeline: their rows are the same."""

import random
import time
from itertools import count
from typing import Any

import polars as pl
import pytest

from queenspark.pipeline.streams import definitions, stream_source
from queenspark.sql import Plan
from queenspark.sql.running import MessageDecoder, engine_spec
from queenspark.sql.running.records import RecordStage, Taken
from queenspark.sql.running.rows import Given, RowStage
from queenspark.store import window_sink
from queenspark.store.window_sink import Bucket
from queenspark.windows import WindowSpec
from queenspark.windows.errors import SpecError
from tests.jobs.system import Jobs

SCHEMA = "create stream {s} (user string, n bigint, at timestamp) with (queue = '{q}');"
STATEMENTS = {
    "kept": "select n from {s} where n % 2 = 0",
    "totals": "select user, sum(n) as s, count(*) as c from {s} group by user window tumbling(at, 10s)",
    "changes": "select user, sum(n) as s from {s} group by user window tumbling(at, 10s) emit changes",
    "groups": "select user, max(n) as m from {s} group by user",
    "buffers": "select n, lag(n) over (rows window buffer 3 rows partition by user) as l from {s}",
    "counts": "select user, sum(n) as s from {s} group by user window count(3)",
    "chained": "select user, count(*) as c from {changes} where s > 3",
}


def records(first: int, count: int, seed: int = 1) -> list[dict[str, object]]:
    """Records of five users, a second or so apart; some come late."""
    chance = random.Random(seed + first)
    return [
        {
            "user": chance.choice("abcde"),
            "n": number,
            "at": _time(number - chance.choice([0, 0, 0, 25])),
        }
        for number in range(first, first + count)
    ]


def _time(second: int) -> str:
    return f"2026-01-31T12:{max(0, second) // 60:02}:{max(0, second) % 60:02}Z"


def create(jobs: Jobs, *names: str) -> None:
    wanted = names or [name for name in STATEMENTS if name != "chained"]
    jobs.run(SCHEMA + ";".join(f"create stream {{{name}}} as {STATEMENTS[name]}" for name in wanted))


def everything(jobs: Jobs, *names: str) -> dict[str, list[tuple[str, str, str]]]:
    """All rows of all jobs: partition, id, values; sorted, because partitions have no order among them."""
    wanted = names or [name for name in STATEMENTS if name != "chained"]
    return {
        name: sorted((row.partition, row.id.split(":", 1)[1], str(row.data)) for row in jobs.rows(name))
        for name in wanted
    }


def expected(jobs: Jobs, *batches: list[dict[str, object]]) -> dict[str, list[tuple[str, str, str]]]:
    """The rows of the jobs in an undisturbed run."""
    jobs.begin()
    create(jobs)
    for batch in batches:
        jobs.push("q", batch)
    jobs.drain()
    found = everything(jobs)
    assert all(found.values())
    jobs.run(";".join(f"drop stream {{{name}}} cascade" for name in STATEMENTS if name != "chained"))
    jobs.begin()
    return found


def values(found: dict[str, list[tuple[str, str, str]]]) -> dict[str, list[tuple[str, str]]]:
    """Partitions and values: ids have positions in them, which differ from run to run."""
    return {name: sorted((partition, data) for partition, _, data in rows) for name, rows in found.items()}


def test_a_paused_job_gives_the_same_rows_later(jobs: Jobs) -> None:
    wanted = expected(jobs, records(0, 60), records(60, 60), records(120, 60))
    create(jobs)
    jobs.push("q", records(0, 60))
    jobs.drain()
    for name in wanted:
        jobs.run(f"pause job {{{name}}}")
    jobs.drain()
    before = everything(jobs)
    jobs.push("q", records(60, 60))
    jobs.drain()
    assert everything(jobs) == before
    assert jobs.job("totals")["state"] == "paused"
    jobs.run("resume job {totals}; resume job {kept}")
    jobs.push("q", records(120, 60))
    jobs.drain()
    for name in wanted:
        jobs.run(f"resume job {{{name}}}")
    jobs.drain()
    assert values(everything(jobs)) == values(wanted)


def test_a_pipeline_that_dies_between_two_buckets_gives_the_same_rows(jobs: Jobs) -> None:
    batches = [records(first, 40) for first in range(0, 200, 40)]
    wanted = expected(jobs, *batches)
    create(jobs)
    for number, batch in enumerate(batches):
        jobs.push("q", batch)
        while jobs.pipeline.batch(fails_after=number % 3):
            pass
    jobs.drain()
    assert values(everything(jobs)) == values(wanted)


def test_a_pipeline_that_loses_its_checkpoint_gives_no_row_twice(jobs: Jobs) -> None:
    wanted = expected(jobs, records(0, 100), records(100, 100))
    create(jobs)
    jobs.push("q", records(0, 100))
    jobs.drain()
    jobs.pipeline.begin_again()
    jobs.push("q", records(100, 100))
    jobs.drain()
    assert values(everything(jobs)) == values(wanted)


def test_a_job_that_fails_stops_no_other(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = expected(jobs, records(0, 60), records(60, 60))
    create(jobs)
    jobs.push("q", records(0, 60))
    jobs.drain()
    bad = jobs.sql.stream(jobs.name("totals"))[0]
    run = RecordStage.run

    def failing(self: RecordStage, messages: pl.DataFrame) -> Taken:
        if self._job == bad:
            raise RuntimeError("no such luck")
        return run(self, messages)

    with monkeypatch.context() as patch:
        patch.setattr(RecordStage, "run", failing)
        jobs.push("q", records(60, 60))
        jobs.drain()
    found = everything(jobs)
    others = [name for name in wanted if name != "totals"]
    assert values({name: found[name] for name in others}) == values({name: wanted[name] for name in others})
    job = jobs.job("totals")
    assert (job["state"], job["lastError"]) == ("failed", "RuntimeError: no such luck")
    assert len(found["totals"]) < len(wanted["totals"])
    jobs.run("restart job {totals}")
    jobs.drain()
    assert jobs.job("totals")["state"] == "running"
    assert values(everything(jobs)) == values(wanted)


def test_a_job_whose_messages_cannot_be_decoded_stops_no_other(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages are decoded for all jobs of a queue together."""
    jobs.begin()
    create(jobs, "kept", "groups")
    decode = MessageDecoder.decode

    def failing(self: MessageDecoder, messages: pl.DataFrame) -> pl.DataFrame:
        decoded = decode(self, messages)
        if any("user" in column for column in decoded.columns):
            raise RecursionError("too deep")
        return decoded

    with monkeypatch.context() as patch:
        patch.setattr(MessageDecoder, "decode", failing)
        jobs.push("q", records(0, 10))
        jobs.drain()
    assert len(jobs.rows("kept")) == 5
    assert jobs.job("kept")["state"] == "running"
    job = jobs.job("groups")
    assert (job["state"], job["lastError"]) == ("failed", "RecursionError: too deep")


def test_a_job_that_the_engine_refuses_stops_no_other(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs.begin()
    with monkeypatch.context() as patch:

        def refusing(plan: Plan) -> WindowSpec | None:
            if plan.kind == "unwindowed":
                raise SpecError("no such function")
            return engine_spec(plan)

        patch.setattr(definitions, "engine_spec", refusing)
        create(jobs, "kept", "counts", "groups")
        jobs.push("q", records(0, 30))
        jobs.drain()
        assert jobs.rows("kept")
        assert jobs.rows("counts")
        job = jobs.job("groups")
    assert (job["state"], job["lastError"]) == ("failed", "the job cannot be planned: no such function")


def test_a_job_that_fails_in_one_bucket_goes_on_in_both(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = expected(jobs, records(0, 60), records(60, 60), records(120, 60))
    create(jobs)
    jobs.push("q", records(0, 60))
    jobs.drain()
    of_windows = RowStage.of_windows
    calls = 0

    def failing(self: RowStage, frame: pl.DataFrame) -> Given:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise RuntimeError("no such luck")
        return of_windows(self, frame)

    with monkeypatch.context() as patch:
        patch.setattr(RowStage, "of_windows", failing)
        jobs.push("q", records(60, 60))
        jobs.drain()
    failed = [name for name in wanted if jobs.job(name)["state"] == "failed"]
    assert len(failed) == 1
    jobs.push("q", records(120, 60))
    jobs.drain()
    jobs.run(f"restart job {{{failed[0]}}}")
    jobs.drain()
    assert values(everything(jobs)) == values(wanted)


def test_a_full_queue_makes_its_job_wait(jobs: Jobs) -> None:
    create(jobs, "kept", "groups")
    jobs.api.configure(jobs.name("kept"), maxSize=10)
    for first in range(0, 200, 40):
        jobs.push("q", records(first, 40))
        jobs.drain()
    assert len(jobs.rows("kept")) == 20
    assert len(jobs.rows("groups")) == 200
    jobs.api.configure(jobs.name("kept"), maxSize=0)
    jobs.drain()
    assert sorted(row.data["n"] for row in jobs.rows("kept")) == list(range(0, 200, 2))


def test_a_replaced_job_gives_each_row_once(jobs: Jobs) -> None:
    create(jobs, "kept", "totals")
    jobs.push("q", records(0, 60))
    jobs.drain()
    jobs.run(
        "create or replace stream {kept} as select n, user from {s} where n % 2 = 0;"
        "create or replace stream {totals} as select user, sum(n) as s, max(n) as m from {s} group by user"
        " window tumbling(at, 10s)"
    )
    jobs.push("q", records(60, 60))
    jobs.drain()
    rows = jobs.rows("kept")
    assert sorted(row.data["n"] for row in rows) == list(range(0, 120, 2))
    assert {row.headers["_version"]: "user" in row.data for row in rows} == {"1": False, "2": True}
    # Windows that were open at the cut are whole, and come from the new version.
    assert jobs.job("totals")["version"] == 2
    latest: dict[tuple[str, str], dict[str, object]] = {}
    for row in jobs.rows("totals"):
        latest[row.partition, row.headers["_event_time"]] = row.data
    jobs.push("q", records(120, 1))
    assert len(jobs.rows("totals")) >= len(latest)


def test_a_job_that_counts_from_now_on_has_whole_windows(jobs: Jobs) -> None:
    query = "select user, sum(n) as s, count(*) as c from {s} group by user window"
    jobs.run(SCHEMA + f"create stream {{totals}} as {query} tumbling(2s)")
    jobs.push("q", records(0, 60))
    jobs.drain()
    found = jobs.run(f"create or replace stream {{totals}} as {query} count(4)")
    assert found[0]["how"] == "at a boundary"
    jobs.drain()
    jobs.push("q", records(60, 60))
    jobs.drain()
    by_user: dict[str, list[int]] = {}
    for record in records(60, 60):
        by_user.setdefault(str(record["user"]), []).append(int(str(record["n"])))
    wanted = [
        (user, sum(numbers[first : first + 4]))
        for user, numbers in by_user.items()
        for first in range(0, len(numbers) - 3, 4)
    ]
    new = [row.data for row in jobs.rows("totals") if row.headers["_version"] == "2"]
    assert sorted((row["user"], row["s"]) for row in new) == sorted(wanted)

    def counted() -> int:
        rows = [row for row in jobs.rows("totals") if row.headers["_version"] == "1"]
        last = {(row.partition, row.headers["_event_time"]): row.data["c"] for row in rows}
        return sum(last.values())

    # The open windows of the old version are sealed in time.
    deadline = time.monotonic() + 60
    while counted() < 60 and time.monotonic() < deadline:
        jobs.drain()
        time.sleep(0.5)
    assert counted() == 60


def test_jobs_over_a_queue_that_is_deleted_fail(jobs: Jobs) -> None:
    create(jobs, "kept")
    jobs.push("q", records(0, 10))
    jobs.drain()
    jobs.api.delete(f"/api/v1/resources/queues/{jobs.name('q')}")
    jobs.drain()
    job = jobs.job("kept")
    assert job["state"] == "failed"
    assert jobs.name("q") in job["lastError"]
    assert len(jobs.rows("kept")) == 5


def test_a_job_dropped_during_a_batch_takes_no_rows_of_others_with_it(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch is repeated by a process that no longer finds the queue of the dropped job."""
    monkeypatch.setattr(window_sink, "_CHUNK_ROWS", 2)
    query = "select user, n from {s} with (partition_by = 'user')"
    jobs.run(SCHEMA + f"create stream {{a}} as {query}; create stream {{b}} as {query}")
    jobs.drain()
    jobs.push("q", records(0, 40))
    pipeline = jobs.pipeline
    end = pipeline._reader.latestOffset(pipeline.offset, pipeline._limit)
    push_rows, calls = Bucket.push_rows, count(1)

    def failing(self: Bucket, *arguments: Any) -> Any:
        if next(calls) == 8:
            raise RuntimeError("killed")
        return push_rows(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Bucket, "push_rows", failing)
        with pytest.raises(RuntimeError, match="killed"):
            pipeline._run(end, None)
    assert jobs.rows("b")
    jobs.run("drop stream {a}")
    stream_source.definitions_of.cache_clear()
    pipeline.restart()
    pipeline._run(end, None)
    pipeline.offset = end
    assert sorted(row["n"] for row in jobs.data("b")) == list(range(40))
