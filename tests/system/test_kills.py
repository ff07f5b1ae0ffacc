"""Exactly once, through all kills and losses of Spark's own state."""

import json
import random
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.postgres_servers import PostgresServer
from tests.processes import descendants, gone
from tests.system.load import (
    Consumers,
    Producers,
    event_us,
    expected_taken,
    fingerprint,
    wait_until,
)
from tests.system.pipeline_process import send
from tests.system.system import Stream, System, as_rows, oracle_rows, own_system
from tests.windows.oracle import Aggregate, Record, Row
from tests.wire.api import Json

pytestmark = [pytest.mark.crash]

FAR_AWAY = 4 * 10**15  # microseconds: no window is open then
SEED = 4
COUNT_KEPT = (
    "SELECT count(*) FROM queenspark.messages m JOIN queenspark.queues q ON q.id = m.queue_id"
    " WHERE q.name IN ('left-kept', 'right-kept')"
)


@pytest.fixture(scope="module")
def victim(
    system_postgres: PostgresServer,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
    full_size: bool,
) -> Iterator[System]:
    """A system whose pipeline is there to be killed; retention runs all the time.

    In the fast suite it is the one that all tests share, and they are done with it.
    """
    if not full_size:
        yield request.getfixturevalue("running_system")
        return
    with own_system(
        system_postgres, tmp_path_factory.mktemp("victim"), retention_interval_seconds=0.5
    ) as system:
        yield system


def define_all_kinds(system: System, *, scale: int, tag: str = "") -> list[Stream]:
    """Streams of all kinds over two queues; windows are `scale` times as long as the shortest sensible."""
    queues = [f"left{tag}", f"right{tag}"]
    second = 1000 * scale
    streams = [
        system.define("tumbling", sources=queues, grace_ms=200, window_duration_ms=3 * second),
        system.define(
            "sliding", sources=queues, partitioned=False, grace_ms=100, window_duration_ms=4 * second,
            window_slide_ms=2 * second,
        ),
        system.define("session", sources=queues, grace_ms=0, window_gap_ms=second),
        system.define("count", sources=queues[:1], window_size_count=7, window_slide_count=5),
        system.define(
            "tumbling", sources=queues, grace_ms=500, event_time="data.at", late="process",
            window_duration_ms=3 * second, idle_timeout_ms=2000,
        ),
    ]  # fmt: skip
    for stream in streams:
        stream.spec = replace(stream.spec, aggregates=(Aggregate("sum", "n", "n"),))
    return streams


def oracle(system: System, stream: Stream) -> list[Row]:
    """All windows that come out when nothing more is pushed."""
    time_of = event_us if stream.event_time else None
    return system.expected(stream, system.records(stream, time_of, fingerprint), FAR_AWAY)


def batches(system: System) -> dict[int, int]:
    """The last batch that each bucket has pushed."""
    return dict(system.run("SELECT bucket, batch FROM queenspark.progress ORDER BY bucket"))


def kill_half_pushed(system: System) -> None:
    """One bucket's windows of a batch are committed, those of the other one are not."""
    for _ in range(5):
        with psycopg.connect(system.database_url) as connection:
            connection.execute("SELECT 1 FROM queenspark.progress WHERE bucket = 1 FOR UPDATE")

            def is_half_pushed() -> bool:
                found = batches(system)
                return len(found) == 2 and found[0] > found[1]

            if wait_until(is_half_pushed, within=60, every=0.02):
                system.pipeline.kill()
                break
            connection.rollback()
            time.sleep(0.3)
    else:
        raise AssertionError(f"no batch was ever pushed by half:\n{system.pipeline.log()}")
    # The last statements of the killed process may still be running in PostgreSQL.
    time.sleep(0.2)
    found = batches(system)
    assert found[0] == found[1] + 1, found


def kill_uncommitted(system: System) -> None:
    """All windows of a batch are pushed; Spark knows nothing of it."""
    offsets = system.pipeline.checkpoint / "offsets"

    def pushed() -> set[str]:
        """The ends of the last batches that the buckets have pushed."""
        found = system.run("SELECT run, batch FROM queenspark.progress")
        return {f"{run} {n}" for run, n in found}

    assert wait_until(lambda: bool(pushed()), within=120), "no batch was pushed"
    before = pushed()
    assert wait_until(lambda: len(before - pushed()) == len(before), within=60, every=0.005)
    system.pipeline.kill()
    ends = {}
    for file in offsets.iterdir():
        if file.name.isdigit():
            end = json.loads(file.read_text().splitlines()[-1])
            ends[f"{end['run']} {end['n']}"] = int(file.name)
    undo_commit(system.pipeline.checkpoint, max(ends[each] for each in pushed()))


def undo_commit(checkpoint: Path, number: int) -> None:
    """Take Spark's logs back to before it noted that a batch was done, and planned the next one."""
    doomed = [("commits", number), ("offsets", number + 1)]
    for log, each in doomed:
        for name in (f"{each}", f".{each}.crc"):
            (checkpoint / log / name).unlink(missing_ok=True)


def kill_all(system: System) -> None:
    """A power cut."""
    system.pipeline.kill()


def kill_java(system: System) -> None:
    """Only the JVM."""
    assert system.pipeline.kill_java() != 0


def kill_driver(system: System) -> None:
    """Only the driver."""
    system.pipeline.kill_driver()


def lose_checkpoint(system: System) -> None:
    """Half a batch is pushed, and Spark's state is gone."""
    kill_half_pushed(system)
    shutil.rmtree(system.pipeline.checkpoint)


SMALL = [kill_half_pushed]
FULL = [
    kill_all, kill_half_pushed, kill_driver, kill_uncommitted, kill_java, lose_checkpoint, kill_all,
    kill_uncommitted, kill_driver, kill_half_pushed,
]  # fmt: skip


@pytest.mark.timeout(1800)
def test_every_window_once_after_any_kill(victim: System, full_size: bool) -> None:
    """Windows, their messages and the deliveries of each group equal those of a run without a crash."""
    chance = random.Random(SEED)
    kills, messages, keys, scale = (FULL, 100_000, 2_000, 15) if full_size else (SMALL, 1_200, 50, 1)
    # However slow the machine is, there must be messages left at the last kill, or no windows are pushed.
    pace = {"per_second": 350} if full_size else {"per_second": 120, "count": 2, "drip_seconds": 0.5}
    load: dict[str, Any] = {"messages": messages, "keys": keys, **pace}
    streams = define_all_kinds(victim, scale=scale)
    url = victim.api.url
    with Consumers(url) as consumers, Producers(url, ["left", "right"], **load, seed=SEED) as producers:
        for stream in streams:
            consumers.consume(stream, "a")
        consumers.consume(streams[0], "b", consumers=2)
        for kill in kills:
            producers.allow(messages // (len(kills) + 1))
            victim.pipeline.wait_until_leading()
            if chance.random() < 0.7:  # else perhaps even before the first batch is done
                before = batches(victim)
                wait_until(lambda before=before: batches(victim) != before, within=60)  # type: ignore[misc]
            time.sleep(chance.uniform(0, 10 if full_size else 1))
            kill(victim)
            victim.pipeline.start()
        producers.finish()
        expected = {stream.name: oracle(victim, stream) for stream in streams}

        def everything_taken() -> bool:
            consumers.check()
            wanted = {(stream.name, "a"): stream for stream in streams} | {(streams[0].name, "b"): streams[0]}
            return all(
                consumers.taken(stream, group).total() >= len(expected[name])
                for (name, group), stream in wanted.items()
            )

        wait_until(everything_taken, within=600 if full_size else 180, every=0.5)
        time.sleep(1)  # duplicates would arrive now
    for stream in streams:
        assert as_rows(victim.sealed(stream)) == oracle_rows(expected[stream.name]), stream.defined
        assert consumers.taken(stream, "a") == expected_taken(expected[stream.name]), stream.defined
    assert consumers.taken(streams[0], "b") == expected_taken(expected[streams[0].name])
    ((pushed,),) = victim.run(
        "SELECT count(*) FROM queenspark.messages m JOIN queenspark.queues q"
        " ON q.id = m.queue_id WHERE q.name IN ('left', 'right')"
    )
    assert pushed == messages


def held(system: System, streams: list[Stream]) -> dict[str, Json]:
    """The reasons that keep retention from deleting anything."""
    found = {stream.name: system.api.read(f"/api/v1/resources/streams/{stream.name}") for stream in streams}
    return {name: stream["progress"]["retention"] for name, stream in found.items()}


@pytest.mark.long
@pytest.mark.timeout(600)
def test_messages_removed_by_retention_are_not_delivered_again(victim: System) -> None:
    """With the checkpoint and all acked windows and messages gone, nothing is delivered twice.

    A window that was open then is sealed although nothing more is pushed.
    """
    chance = random.Random(SEED)
    streams = define_all_kinds(victim, scale=1, tag="-kept")
    streams += [victim.define("count", sources=["left-kept"], window_size_count=size) for size in (5, 20)]
    silent = victim.define("tumbling", sources=["silent"], grace_ms=0, window_duration_ms=30_000)
    for stream in [*streams, silent]:
        stream.spec = replace(stream.spec, aggregates=(Aggregate("sum", "n", "n"),))
    numbers = iter(range(1_000_000))

    def push(queue: str, key: int) -> None:
        victim.api.push(queue, {"n": next(numbers), "at": int(time.time() * 1000)}, partition=f"k{key}")

    victim.pipeline.wait_until_leading()
    records: dict[str, dict[tuple[int, int], Record]] = {stream.name: {} for stream in [*streams, silent]}

    def note_records() -> None:
        for stream in [*streams, silent]:
            time_of = event_us if stream.event_time else None
            found = victim.records(stream, time_of, fingerprint)
            records[stream.name] |= {(record.txid, record.id): record for record in found}

    def expected(stream: Stream) -> list[Row]:
        return victim.expected(stream, list(records[stream.name].values()), FAR_AWAY)

    with Consumers(victim.api.url) as consumers:
        for stream in [*streams, silent]:
            consumers.consume(stream, "a")

        def all_taken(some: list[Stream]) -> bool:
            counts = {stream.name: len(expected(stream)) for stream in some}

            def now() -> bool:
                consumers.check()
                return all(consumers.taken(stream, "a").total() >= counts[stream.name] for stream in some)

            return wait_until(now, within=120)

        def so_far() -> dict[str, tuple[int, int, int]]:
            """Number of windows taken, sealed and expected, by stream."""
            return {
                stream.name: (
                    consumers.taken(stream, "a").total(), len(victim.sealed(stream)), len(expected(stream)),
                )
                for stream in [*streams, silent]
            }  # fmt: skip

        for _ in range(150):
            push(chance.choice(("left-kept", "left-kept", "right-kept")), chance.randrange(4))
            time.sleep(0.01)
        note_records()
        assert all_taken(streams), (so_far(), victim.pipeline.log())
        ((before,),) = victim.run(COUNT_KEPT)
        for queue in ("left-kept", "right-kept"):
            victim.api.configure(queue, retentionSeconds=1)
        victim.run(
            "UPDATE queenspark.queues SET retention_enabled = true, completed_retention_seconds = 1"
            " WHERE id IN (SELECT queue_id FROM queenspark.streams)"
        )
        assert wait_until(lambda: victim.run(COUNT_KEPT)[0][0] < before, within=60), held(victim, streams)
        push("silent", 0)
        note_records()
        time.sleep(3)
        ((left,),) = victim.run(COUNT_KEPT)
        victim.pipeline.kill()
        shutil.rmtree(victim.pipeline.checkpoint)
        victim.pipeline.start()
        victim.pipeline.wait_until_leading()
        assert all_taken([silent]), (so_far(), victim.pipeline.log())
        for number in range(150):
            push(chance.choice(("left-kept", "left-kept", "right-kept")), chance.randrange(5))
            time.sleep(0.01)
            if number % 10 == 9:  # before they are removed in their turn
                note_records()
        all_taken(streams)
        time.sleep(1)  # duplicates would arrive now
    for stream in [*streams, silent]:
        assert consumers.taken(stream, "a") == expected_taken(expected(stream)), stream.defined
    assert left < before / 2, "retention has removed hardly anything"


def test_signals_to_all_of_its_processes_end_a_pipeline_cleanly(victim: System) -> None:
    """As sent by a service manager, or a closing terminal; twice, from an impatient user."""
    pipeline = victim.pipeline
    begin = pipeline.log_file.stat().st_size
    pipeline.wait_until_leading()
    stream = victim.define("tumbling", grace_ms=0, window_duration_ms=500)
    victim.api.push(stream.queues[0], 1, partition="k")
    assert victim.wait_for(stream, 1), pipeline.log()
    pids = [pipeline.process.pid, *descendants(pipeline.process.pid)]
    send(signal.SIGINT, pids)
    time.sleep(0.2)
    send(signal.SIGHUP, pids)
    assert pipeline.process.wait(60) == 0, pipeline.log()
    assert b"Spark's Java process ended" not in pipeline.log_file.read_bytes()[begin:]
    assert wait_until(lambda: all(map(gone, pids)), within=10)
