"""Jobs in the store: their queues, temporary ones, and the retention held for them."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from queenspark.sql import Relation, freeze, parse_one, thaw
from queenspark.sql.statements import CreateStream
from queenspark.sql.types import BIGINT
from queenspark.store.definitions import to_definitions
from queenspark.store.errors import Refused
from queenspark.store.job import Job, WantedJob
from queenspark.store.page import Page
from queenspark.store.queries import query
from queenspark.store.sweeper import Sweeper
from tests.database import connect
from tests.store.desk import Desk, item
from tests.store.test_retention import left
from tests.store.test_stream_retention import old_messages
from tests.streams.sealing import Pipeline

pytestmark = pytest.mark.anyio


class Queue:
    """A catalogue with the queue `q`, whose payloads have a number `a`."""

    def find(self, name: str) -> Relation | None:
        """The queue."""
        return Relation(name, "queue", None, {("a",): BIGINT})

    def names(self) -> Iterable[str]:
        """Its name."""
        return ["q"]


def wanted(name: str = "j", select: str = "SELECT a FROM q", **more: Any) -> WantedJob:
    """A job over `q`."""
    statement = parse_one(f"CREATE STREAM {name} AS {select}")
    assert isinstance(statement, CreateStream)
    frozen = freeze(statement, Queue())
    window = thaw(frozen).window
    spec = {} if window is None else msgspec.json.decode(window.to_json())
    given = {"namespace": "default", "name": name, "query": frozen, "spec": spec, "queues": ("q",)}
    return WantedJob(**{**given, **more})


async def create(desk: Desk, *args: Any, **more: Any) -> Job:
    async with desk.store.jobs.change() as change:
        return await change.create(wanted(*args, **more))


def state(job: Job, desk: Desk, position: tuple[int, int], *behind: int) -> str:
    """The pipeline's progress: it has read up to a position, and holds a job at another one."""
    ((seq,),) = desk.run("SELECT max(seq) FROM queenspark.definitions")
    held = {f"{job.id}:{job.version}": [*behind, 0]} if behind else {}
    noted = {"txid": position[0], "id": position[1], "seq": seq, "behind": held}
    return msgspec.json.encode(noted).decode()


async def test_an_older_pipeline_takes_a_job_for_deleted(desk: Desk) -> None:
    await desk.push("m")
    job = await create(desk)
    ((body, computing),) = desk.run("SELECT body, computing FROM queenspark.definitions")
    assert body is None
    assert computing["query"] == msgspec.to_builtins(job.query)


async def test_definitions_of_jobs_are_read_as_of_a_seq(desk: Desk) -> None:
    await desk.push("m")
    job = await create(desk)
    async with desk.store.jobs.change() as change:
        assert await change.pause(job)
    with connect(desk.store.database.url) as connection:
        for seq, paused in ((1, False), (2, True), (None, True)):
            rows = connection.execute(query("definitions_as_of").encode(), {"seq": seq}).fetchall()
            (definition,) = to_definitions(rows)
            assert (definition.stream_id, definition.body.paused) == (job.id, paused)


async def test_nothing_of_a_refused_change_stays(desk: Desk) -> None:
    await desk.push("m")

    async def both() -> None:
        async with desk.store.jobs.change() as change:
            await change.create(wanted("first"))
            await change.create(wanted("q"))

    with pytest.raises(Refused, match="the queue q already exists"):
        await both()
    assert (await desk.store.jobs.page(Page()))[0] == []
    assert desk.run("SELECT count(*) FROM queenspark.definitions") == [(0,)]


async def test_a_dry_run_leaves_nothing(desk: Desk) -> None:
    await desk.push("m")
    async with desk.store.jobs.change(dry_run=True) as change:
        await change.create(wanted())
        assert await change.find("default", "j") is not None
    async with desk.store.jobs.reading() as reading:
        assert await reading.find("default", "j") is None


async def test_a_missing_source_is_refused(desk: Desk) -> None:
    with pytest.raises(Refused, match="the queue q does not exist"):
        await create(desk)


async def test_a_job_is_refused_while_messages_for_its_queue_are_staged(desk: Desk) -> None:
    await desk.push("m")
    await desk.store.maintenance.set_push(True)
    await desk.store.maintenance.stage([item("j", "x")])
    await desk.store.queues.delete("j")
    with pytest.raises(Refused, match="messages for the queue j are staged"):
        await create(desk)


async def test_a_push_that_knew_nothing_of_the_job_is_refused(desk: Desk) -> None:
    """The queue appears between the check of a push and its insert."""
    await desk.push("m")
    await create(desk)
    with pytest.raises(Refused, match="only that job can push to it"):
        await desk.store.pusher.push([item("j", "x")])
    with pytest.raises(Refused, match="only that job can push to it"):
        await desk.store.maintenance.stage([item("j", "x")])
    with pytest.raises(Refused, match="only that job can push to it"):
        await desk.store.transactions.run([item("j", "x")], [])
    assert desk.run("SELECT count(*) FROM queenspark.messages") == [(1,)]


async def test_the_queue_of_a_job_goes_with_the_job_only(desk: Desk) -> None:
    await desk.push("m")
    job = await create(desk)
    with pytest.raises(Refused, match="DROP STREAM j deletes both"):
        await desk.store.queues.delete("j")
    async with desk.store.jobs.change() as change:
        await change.drop(job)
    assert await desk.store.catalog.queue("j") is None
    assert desk.run("SELECT 1 FROM queenspark.streams") == []


async def test_temporary_jobs_stay_while_they_are_renewed(desk: Desk) -> None:
    await desk.push("m")
    async with desk.store.jobs.change() as change:
        job = await change.create_temporary(wanted(), 60)
    assert job.queue.startswith("windows:%select/")
    assert await desk.store.jobs.expire() == []
    assert (await desk.store.jobs.page(Page()))[0] == []
    desk.run("UPDATE queenspark.streams SET expires_at = now() - interval '1 second'")
    assert await desk.store.jobs.renew(job, 60)
    assert await desk.store.jobs.expire() == []
    desk.run("UPDATE queenspark.streams SET expires_at = now() - interval '1 second'")
    assert await desk.store.jobs.expire() == [job.queue]
    assert not await desk.store.jobs.renew(job, 60)
    ((computing,),) = desk.run("SELECT computing FROM queenspark.definitions ORDER BY seq DESC LIMIT 1")
    assert computing is None


async def test_lasting_jobs_cannot_be_renewed(desk: Desk) -> None:
    await desk.push("m")
    job = await create(desk)
    assert not await desk.store.jobs.renew(job, 1)
    ((expires_at,),) = desk.run("SELECT expires_at FROM queenspark.streams")
    assert expires_at is None


async def test_rows_are_read_in_order_and_only_when_they_are_final(desk: Desk) -> None:
    await desk.push("m")
    job = await create(desk)
    insert = (
        "INSERT INTO queenspark.messages"
        " (txid, id, partition_id, created_at, queue_id, transaction_id, payload)"
        " VALUES (pg_current_xact_id()::text::bigint, %s, 1, now(), %s, %s, %s)"
    )
    with desk.connect() as first:
        first.execute(insert, (900, job.queue_id, "1", "1"))
        desk.run(insert, 100, job.queue_id, "2", "2")
        assert await desk.store.jobs.rows(job, (0, 0), 10) == []
    rows = await desk.store.jobs.rows(job, (0, 0), 10)
    assert [row.payload for row in rows] == ["1", "2"]
    assert await desk.store.jobs.rows(job, (rows[0].txid, rows[0].id), 10) == rows[1:]
    assert await desk.store.jobs.rows(job, (0, 0), 1) == rows[:1]


async def test_large_rows_and_samples_come_a_few_at_a_time(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.store.pusher.push([item("q", str(n), payload="x" * 98) for n in range(5)])
    job = await create(desk)
    desk.run("UPDATE queenspark.messages SET queue_id = %s", job.queue_id)
    monkeypatch.setattr("queenspark.store.jobs._ROWS_BYTES", 250)
    monkeypatch.setattr("queenspark.store.job_change._SAMPLE_BYTES", 250)
    assert len(await desk.store.jobs.rows(job, (0, 0), 10)) == 3
    async with desk.store.jobs.reading() as reading:
        assert len(await reading.newest_payloads(job.queue_id, 10)) == 3
        assert len(await reading.newest_payloads(job.queue_id, 2)) == 2
    monkeypatch.setattr("queenspark.store.jobs._ROWS_BYTES", 1)
    assert len(await desk.store.jobs.rows(job, (0, 0), 10)) == 1


# Retention


async def test_messages_that_a_job_has_not_read_are_kept(desk: Desk) -> None:
    at = await old_messages(desk, "a", "b", "c")
    job = await create(desk)
    pipeline = Pipeline(desk.store.database.url)
    pipeline.push(state=state(job, desk, at["b"]))
    pipeline.sink.close()
    await desk.store.sweeper.run()
    assert left(desk) == ["c"]


async def test_a_held_job_keeps_its_unread_messages_within_the_limit(desk: Desk) -> None:
    at = await old_messages(desk, "a", "b", "c")
    job = await create(desk)
    pipeline = Pipeline(desk.store.database.url)
    pipeline.push(state=state(job, desk, at["c"], *at["a"]))
    pipeline.sink.close()
    await desk.store.sweeper.run()
    assert left(desk) == ["b", "c"]
    condition = (await desk.store.jobs.conditions([job]))[job.id]
    assert condition.progress["held_since"] is not None
    await Sweeper(desk.store.database, hold_seconds=30).run()
    assert left(desk) == []


async def test_unconsumed_rows_keep_no_source_messages(desk: Desk) -> None:
    at = await old_messages(desk, "a", "b")
    job = await create(desk)
    await desk.pop(queue="j")
    desk.run(
        "WITH made AS (INSERT INTO queenspark.partitions (queue_id, name) VALUES (%s, 'p') RETURNING id)"
        " INSERT INTO queenspark.messages"
        " (txid, id, partition_id, created_at, queue_id, transaction_id, payload, trace_id)"
        " SELECT pg_current_xact_id()::text::bigint, 1, made.id, now(), %s, 'row', '{}', 'row' FROM made",
        job.queue_id, job.queue_id,
    )  # fmt: skip
    pipeline = Pipeline(desk.store.database.url)
    pipeline.push(state=state(job, desk, at["b"]))
    pipeline.sink.close()
    await desk.store.sweeper.run()
    assert left(desk) == ["row"]
