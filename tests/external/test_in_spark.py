"""Jobs over files in Spark: a pipeline process of its own, started, killed and stopped."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.external.test_files import COLUMNS, clicks, expected, minutes
from tests.postgres_servers import PostgresServer
from tests.system.load import wait_until
from tests.system.system import System, own_system
from tests.wire.sql import Sql

pytestmark = [pytest.mark.crash]


@pytest.fixture(scope="module")
def victim(system_postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A system whose pipeline is there to be killed."""
    with own_system(system_postgres, tmp_path_factory.mktemp("victim")) as system:
        yield system


def rows(system: System, name: str) -> list[dict[str, Any]]:
    found = system.run(
        "SELECT m.payload FROM queenspark.messages m JOIN queenspark.queues q ON q.id = m.queue_id"
        " WHERE q.name = %s ORDER BY m.txid, m.id",
        name,
    )
    return [json.loads(payload) for (payload,) in found]


def test_a_job_over_files_runs_and_ends(victim: System, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("".join(json.dumps(click) + "\n" for click in clicks(1000)))
    sql = Sql(victim.api)
    sql(
        f"create source clicks ({COLUMNS}) with (connector = 'files', path = '{tmp_path}', mode = 'once');"
        "create stream per_minute as select k, count(*) as c, sum(n) as s, window_start as at from clicks"
        " group by k window tumbling(at, 1m)"
    )
    assert wait_until(lambda: sql.job("per_minute")["state"] == "finished", within=120), victim.pipeline.log()
    assert minutes(rows(victim, "per_minute")) == expected(1000)
