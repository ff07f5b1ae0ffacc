"""A job that kills the workers of Spark: it is disabled, and the others continue."""

import os
from pathlib import Path

import pytest

from tests.postgres_servers import PostgresServer
from tests.system.load import wait_until
from tests.system.system import own_system
from tests.wire.sql import Sql

pytestmark = [pytest.mark.crash, pytest.mark.long]  # tests/jobs/test_deaths.py has a small version

#: Python runs it at the start of every process: computing a row of the key `poison` kills the process.
SITE = """
import os
import signal

from queenspark.sql.running import rows

finished = rows.RowStage._finished


def killing(self, frame):
    if (frame["key"] == "poison").any():
        os.kill(os.getpid(), signal.SIGKILL)
    return finished(self, frame)


rows.RowStage._finished = killing
"""


@pytest.mark.timeout(600)
def test_a_job_that_kills_workers_is_disabled_and_the_others_go_on(
    system_postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(SITE)
    known = [path for path in [os.environ.get("PYTHONPATH")] if path]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "site"), *known]))
    with own_system(system_postgres, tmp_path) as system:
        sql = Sql(system.api)
        sql("create stream clicks (user string, n bigint) with (queue = 'clicks-queue')")
        sql("create stream deadly as select user, count(*) as c from clicks group by user")
        sql("create stream totals as select n % 3 as k, sum(n) as s from clicks group by n % 3")
        sql("create stream kept as select user, n from clicks where n > 0")
        system.pipeline.wait_until_leading()

        def push(first: int, user: str) -> None:
            system.api.push("clicks-queue", *({"user": user, "n": n} for n in range(first, first + 10)))

        def counts() -> dict[str, int]:
            found = system.run(
                "SELECT q.name, count(*) FROM queenspark.messages m"
                " JOIN queenspark.queues q ON q.id = m.queue_id"
                " WHERE q.name IN ('deadly', 'totals', 'kept') GROUP BY q.name"
            )
            return dict(found)

        push(1, "ann")
        assert wait_until(lambda: counts() == {"deadly": 10, "totals": 10, "kept": 10}, within=120)
        push(11, "poison")
        assert wait_until(lambda: sql.job("deadly")["state"] == "failed", within=240), system.pipeline.log()
        job = sql.job("deadly")
        assert "Spark workers died" in job["lastError"]
        assert {name: sql.job(name)["state"] for name in ("totals", "kept")} == dict.fromkeys(
            ("totals", "kept"), "running"
        )
        push(21, "ben")
        wanted = {"deadly": 10, "totals": 30, "kept": 30}
        assert wait_until(lambda: counts() == wanted, within=120), (counts(), system.pipeline.log())
        # A statement that leaves the poison out gives the other rows, each once.
        sql(
            "create or replace stream deadly as select user, count(*) as c from clicks where user <> 'poison'"
            " group by user"
        )
        assert wait_until(lambda: counts() == {**wanted, "deadly": 20}, within=120), counts()
        assert sql.job("deadly")["state"] == "running"
