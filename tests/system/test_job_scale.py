"""A thousand different jobs in one query."""

import json
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from tests.jobs.many import SCHEMA, clicks, expected, statement, values
from tests.postgres_servers import PostgresServer
from tests.system.load import wait_until
from tests.system.system import System, own_system
from tests.wire.sql import Sql

pytestmark = [pytest.mark.long]

JOBS, QUEUES, MESSAGES = 1_000, 100, 100_000


@pytest.fixture(scope="module")
def own(system_postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A system with nothing in it."""
    with own_system(system_postgres, tmp_path_factory.mktemp("jobs")) as system:
        yield system


def delay(system: System, queue: str, name: str) -> float:
    """Seconds from a push to the row that comes of it."""
    ((before,),) = system.run(
        "SELECT count(*) FROM queenspark.messages m JOIN queenspark.queues q ON q.id = m.queue_id"
        " WHERE q.name = %s",
        name,
    )
    began = time.monotonic()
    system.api.push(queue, {"user": "late", "n": 6, "at": 0})
    assert wait_until(lambda: count(system, name) > before, within=60, every=0.01)
    return time.monotonic() - began


def count(system: System, name: str) -> int:
    """The rows of a job."""
    statement = (
        "SELECT count(*) FROM queenspark.messages m JOIN queenspark.queues q ON q.id = m.queue_id"
        " WHERE q.name = %s"
    )
    return int(system.run(statement, name)[0][0])


@pytest.mark.timeout(1800)
def test_a_thousand_jobs_give_their_own_rows(own: System) -> None:
    sql = Sql(own.api)
    queues = [f"q{number}" for number in range(QUEUES)]
    sql(";".join(SCHEMA.format(queue=queue) for queue in [*queues, "alone"]))
    sql("create stream lone as select user, n from alone_s")
    own.pipeline.wait_until_leading()
    for _ in range(5):  # until Spark is warm
        delay(own, "alone", "lone")
    alone = sorted(delay(own, "alone", "lone") for _ in range(20))[10]
    for first in range(0, JOBS, 50):
        sql(";".join(statement(n, f"j{n}", queues[n % QUEUES]) for n in range(first, first + 50)))
    records = clicks(MESSAGES // QUEUES)
    for first in range(0, len(records), 200):
        for queue in queues:
            own.api.push(queue, *(click.payload() for click in records[first : first + 200]))

    wanted: dict[str, Any] = {
        f"j{number}": expected(number, records, is_sealed=True) for number in range(JOBS)
    }
    totals = sum(each.total() for each in wanted.values())

    def is_done() -> bool:
        statement = (
            "SELECT count(*) FROM queenspark.messages m JOIN queenspark.streams s ON s.queue_id = m.queue_id"
            " WHERE s.name LIKE 'j%%'"
        )
        return int(own.run(statement)[0][0]) >= int(totals)

    assert wait_until(is_done, within=900, every=1.0), own.pipeline.log()
    found = defaultdict(list)
    for name, payload in own.run(
        "SELECT s.name, m.payload FROM queenspark.messages m JOIN queenspark.streams s"
        " ON s.queue_id = m.queue_id WHERE s.name LIKE 'j%'"
    ):
        found[name].append(json.loads(payload))
    for name, rows in wanted.items():
        assert values(found[name]) == rows, name
    delay(own, "alone", "lone")
    beside = sorted(delay(own, "alone", "lone") for _ in range(20))[10]
    assert beside < 3 * alone + 1.0, f"alone {alone:.3f} s, beside {JOBS} idle ones {beside:.3f} s"
