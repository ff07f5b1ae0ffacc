"""Jobs over files in Spark; one pipeline process is killed again and again."""

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.broker_process import Broker
from tests.external.test_files import COLUMNS, clicks, expected, minutes
from tests.postgres_servers import PostgresServer
from tests.system.load import wait_until
from tests.system.pipeline_process import PipelineProcess
from tests.system.system import System
from tests.wire.api import Api
from tests.wire.sql import Sql


@pytest.fixture(scope="module")
def victim(system_postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A system whose pipeline reads in small batches, and is there to be killed."""
    folder = tmp_path_factory.mktemp("victim")
    with system_postgres.database() as url:
        broker = Broker(url, folder / "broker.log")
        pipeline = PipelineProcess(url, folder / "pipeline", spark_max_rows=1000)
        pipeline.start()
        with Api(broker.url, url) as api:
            yield System(api, url, pipeline)
        pipeline.kill()
        broker.stop()


def rows(system: System, name: str) -> list[dict[str, Any]]:
    """The rows of a job."""
    found = system.run(
        "SELECT m.payload FROM queenspark.messages m JOIN queenspark.queues q ON q.id = m.queue_id"
        " WHERE q.name = %s ORDER BY m.txid, m.id",
        name,
    )
    return [json.loads(payload) for (payload,) in found]


def write(path: Path, records: list[dict[str, object]]) -> None:
    """A file that appears at once."""
    part = path.with_name(f".{path.name}")
    part.write_text("".join(json.dumps(record) + "\n" for record in records))
    part.rename(path)


@pytest.mark.timeout(600)
def test_a_query_over_files_goes_straight_to_files(system: System, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write(tmp_path / "in" / "a.json", clicks(3000))
    checkpoints = system.pipeline.folder / "checkpoint" / "jobs"
    known = set(checkpoints.iterdir()) if checkpoints.exists() else set()
    sql = Sql(Api(system.api.url, system.database_url))
    sql(
        f"create source inputs ({COLUMNS}) with (connector = 'files', path = '{tmp_path}/in', mode = 'once');"
        "create sink outputs as select k, count(*) as c, sum(n) as s, window_start as at, avg(n) as mean"
        " from inputs group by k window tumbling(at, 1m)"
        f" with (connector = 'files', path = '{tmp_path}/out', partition_by = 'k')"
    )
    assert wait_until(lambda: sql.job("outputs")["state"] == "finished", within=500), system.pipeline.log()
    assert sorted(each.name for each in (tmp_path / "out" / "v1").iterdir()) == [
        "_spark_metadata", "k=k0", "k=k1", "k=k2",
    ]  # fmt: skip
    found = pl.read_parquet(f"{tmp_path}/out/v1/**/*.parquet", hive_partitioning=True)
    assert found.schema["c"] == pl.Int64
    assert found.schema["at"] == pl.Datetime("us", "UTC")
    shown = found.with_columns(pl.col("at").dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ")).to_dicts()
    assert minutes(shown) == expected(3000)
    assert len(shown) == len(expected(3000))
    assert sql.job("outputs")["run"]["rows"] == len(shown)
    written = set(checkpoints.iterdir()) - known
    assert len(written) == 1
    sql("drop sink outputs; drop source inputs")
    assert wait_until(lambda: not written & set(checkpoints.iterdir()), within=120), system.pipeline.log()
    sql.api.http.close()


@pytest.mark.long  # test_files.py has a small version
@pytest.mark.crash
@pytest.mark.timeout(900)
def test_every_row_once_after_any_kill(victim: System, tmp_path: Path, full_size: bool) -> None:
    at = f"connector = 'files', path = '{tmp_path}"
    kills, count = (8, 60_000) if full_size else (1, 9_000)
    chance = random.Random(7)
    for folder in ("once", "watched"):
        (tmp_path / folder).mkdir()
        for number in range(3):
            write(tmp_path / folder / f"{number}.json", clicks(count // 3, number * count // 3))
    sql = Sql(victim.api)
    sql(
        f"create source clicks ({COLUMNS}) with ({at}/once', mode = 'once');"
        f"create source watched ({COLUMNS}) with ({at}/watched');"
        "create stream per_minute as select k, count(*) as c, sum(n) as s, window_start as at from clicks"
        " group by k window tumbling(at, 1m);"
        "create stream running as select k, n, sum(n) over (rows window buffer 10 rows partition by k) as s"
        " from clicks;"
        "create stream odd as select n from watched where n % 2 = 1 with (partition_by = 'n')"
    )
    for _ in range(kills):
        victim.pipeline.wait_until_leading()
        before = len(rows(victim, "odd"))
        wait_until(lambda before=before: len(rows(victim, "odd")) > before, within=60)  # type: ignore[misc]
        time.sleep(chance.uniform(0, 2))
        victim.pipeline.kill()
        victim.pipeline.start()
    write(tmp_path / "watched" / "later.json", clicks(100, count))
    wanted = [n for n in range(count + 100) if n % 2]

    def is_done() -> bool:
        states = [sql.job(name)["state"] for name in ("per_minute", "running")]
        return states == ["finished", "finished"] and len(rows(victim, "odd")) >= len(wanted)

    assert wait_until(is_done, within=300, every=0.5), victim.pipeline.log()
    found = rows(victim, "per_minute")
    assert minutes(found) == expected(count)
    assert len(found) == len(expected(count))
    assert sorted(row["n"] for row in rows(victim, "odd")) == wanted
    assert sorted((row["n"], row["s"]) for row in rows(victim, "running")) == [
        (n, sum(range(n, max(-1, n - 30), -3))) for n in range(count)
    ]
    job = sql.job("per_minute")
    assert (job["run"]["files"], job["run"]["records"], job["dead"]) == (3, count, 0)
    assert sql.job("odd")["state"] == "running"
