"""Rows of jobs, exactly once, through all kills, alongside a job that always fails."""

import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from threading import Event, Thread

import pytest

from tests.postgres_servers import PostgresServer
from tests.system.load import wait_until
from tests.system.system import System, own_system
from tests.system.test_kills import (
    batches,
    kill_all,
    kill_driver,
    kill_half_pushed,
    kill_java,
    kill_uncommitted,
)
from tests.wire.api import Json
from tests.wire.sql import Sql

pytestmark = [pytest.mark.crash, pytest.mark.long]  # tests/jobs/test_control.py has a small version

SEED = 11
BEGIN_MS = 1_769_860_800_000
SCHEMA = "create stream clicks (user string, n bigint, at timestamp) with (queue = 'clicks-queue')"
STATEMENTS = {
    "kept": "select user, n from clicks where n % 3 = 0 with (partition_by = 'user')",
    "totals": "select user, count(*) as c, sum(n) as s from clicks group by user window tumbling(at, 5s)"
    " with (late = 'drop')",
    "revised": "select user, count(*) as c, max(n) as m from clicks group by user"
    " window sliding(at, 10s, 5s)",
    "visits": "select user, count(*) as c, first(n) as f from clicks group by user window session(at, 3s)",
    "changes": "select user, sum(n) as s from clicks group by user window tumbling(at, 5s) emit changes",
    "counts": "select user, sum(n) as s, min(n) as m from clicks group by user window count(5)",
    "groups": "select user, count(*) as c, avg(n) as a from clicks group by user",
    "buffers": "select user, n, lag(n, 2) over (rows window buffer 5 rows partition by user) as l"
    " from clicks",
    "chained": "select window_start as at, sum(c) as c, count(*) as r from totals window tumbling(20s)"
    " with (keep = '1d')",
}
FAILING = "create stream failing as select user, n from clicks"
Row = tuple[str, str, str]


@pytest.fixture(scope="module")
def victim(system_postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A system whose pipeline is there to be killed."""
    with own_system(system_postgres, tmp_path_factory.mktemp("victim")) as system:
        yield system


def create(sql: Sql, prefix: str) -> None:
    """All jobs; those that read another one read that of the same prefix."""
    for name, query in STATEMENTS.items():
        sql.one(f"create stream {prefix}{name} as {query.replace('from totals', f'from {prefix}totals')}")


def rows(system: System, name: str) -> list[Row]:
    """The rows of a job: partition, payload, revision; including duplicates."""
    found = system.run(
        "SELECT p.name, m.payload, coalesce(m.headers::jsonb ->> '_revision', '') FROM queenspark.messages m"
        " JOIN queenspark.queues q ON q.id = m.queue_id JOIN queenspark.partitions p ON p.id = m.partition_id"
        " WHERE q.name = %s",
        name,
    )
    if not name.endswith("chained"):
        return sorted(found)
    # Rows of different keys come in any order: batches decide how often a window is revised, not its result.
    last: dict[str, tuple[int, Row]] = {}
    for row in found:
        revision, at = int(row[2]), payload(row)["at"]
        if revision > last.get(at, (0, row))[0]:
            last[at] = (revision, (row[0], row[1], ""))
    return sorted(row for _, row in last.values())


def difference(expected: list[Row], found: list[Row]) -> tuple[list[Row], list[Row]]:
    """Missing rows, and unexpected ones."""
    missing, extra = Counter(expected) - Counter(found), Counter(found) - Counter(expected)
    return sorted(missing.elements()), sorted(extra.elements())


def payload(row: Row) -> Json:
    """The content of a row."""
    found: Json = json.loads(row[1])
    return found


def clicks(chance: random.Random, first: int, count: int) -> list[Json]:
    """Clicks of twenty users, two a second; some come late."""
    return [
        {"user": f"u{chance.randrange(20)}", "n": n, "at": BEGIN_MS + 500 * n - chance.choice([0, 0, 9_000])}
        for n in range(first, first + count)
    ]


@pytest.mark.timeout(1800)
def test_every_row_once_after_any_kill(victim: System) -> None:
    """Rows are those of the same jobs that read the same records when all is quiet."""
    chance = random.Random(SEED)
    kills = [
        kill_all, kill_half_pushed, kill_driver, kill_uncommitted, kill_java, kill_all, kill_uncommitted,
        kill_driver, kill_half_pushed, kill_all,
    ]  # fmt: skip
    sql = Sql(victim.api)
    victim.api.configure("clicks-queue")
    sql(SCHEMA)
    create(sql, "")
    sql(FAILING)
    victim.run(
        "UPDATE queenspark.definitions"
        " SET computing = jsonb_set(computing, '{query,select}', '\"SELECT x FROM\"')"
        " WHERE stream_id = (SELECT id FROM queenspark.streams WHERE name = 'failing')"
    )
    pushed = 0

    def push(count: int) -> None:
        nonlocal pushed
        for _ in range(count // 50):
            victim.api.push("clicks-queue", *clicks(chance, pushed, 50), partition=f"p{chance.randrange(3)}")
            pushed += 50
            time.sleep(0.05)

    def push_until(is_over: Event, least: int) -> None:
        first = pushed
        while pushed < first + least or (not is_over.is_set() and pushed < first + 6_000):
            push(50)

    for kill in kills:
        victim.pipeline.wait_until_leading()
        before = batches(victim)
        push(400)
        wait_until(lambda before=before: batches(victim) != before, within=60)  # type: ignore[misc]
        push(400)
        time.sleep(chance.uniform(0, 2))
        push_more = chance.randrange(4) * 100

        if kill in (kill_half_pushed, kill_uncommitted):
            # There must be something to push while they wait for it.
            is_killed = Event()
            thread = Thread(target=push_until, args=(is_killed, 600 + push_more))
            thread.start()
            try:
                kill(victim)
            finally:
                is_killed.set()
                thread.join()
        else:
            kill(victim)
        victim.pipeline.start()
    push(200)
    victim.pipeline.wait_until_leading()
    create(sql, "calm_")

    def is_done(ends: int = 0) -> bool:
        states = {job["name"]: job for job in victim.api.read("/api/v1/jobs", limit=100)["jobs"]}
        counts = dict(
            victim.run(
                "SELECT s.name, sum(t.records) FROM queenspark.streams s JOIN queenspark.stream_stats t"
                " ON t.stream_id = s.id GROUP BY s.name"
            )
        )
        assert all(state["state"] == "running" for name, state in states.items() if name != "failing"), states
        return all(
            counts.get(f"{prefix}{name}") == ends + (pushed if name != "kept" else len(range(0, pushed, 3)))
            for prefix in ("", "calm_")
            for name in STATEMENTS
            if name != "chained"
        )

    assert wait_until(is_done, within=180, every=0.5), victim.pipeline.log()
    ends = [{"user": f"u{n}", "n": 0, "at": BEGIN_MS + 100_000_000} for n in range(20)]
    victim.api.push("clicks-queue", *ends)
    assert wait_until(lambda: is_done(len(ends)), within=180, every=0.5), victim.pipeline.log()

    def same() -> bool:
        return all(rows(victim, name) == rows(victim, f"calm_{name}") for name in STATEMENTS)

    wait_until(same, within=60, every=1.0)
    for name in STATEMENTS:
        missing, extra = difference(rows(victim, f"calm_{name}"), rows(victim, name))
        assert (missing, extra) == ([], []), (name, sql.job(name), victim.pipeline.log()[-4000:])
        assert rows(victim, name), name
    values = sorted(row["n"] for row in map(payload, rows(victim, "kept")))
    assert values == sorted([*range(0, pushed, 3), *([0] * 20)])
    counted = [sum(row["c"] for row in map(payload, rows(victim, name))) for name in ("totals", "chained")]
    assert 0.9 * counted[0] < counted[1] <= counted[0]  # the last window of the other is still open
    job = sql.job("failing")
    assert job["state"] == "failed"
    assert "cannot be planned" in job["lastError"]
    assert rows(victim, "failing") == []
