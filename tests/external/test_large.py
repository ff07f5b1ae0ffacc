"""Jobs over files at a size and in a place that takes minutes: more than memory holds, and on a cluster."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.broker_process import Broker
from tests.external.test_files import COLUMNS, clicks, expected, minutes
from tests.external.test_in_spark import rows, write
from tests.postgres_servers import PostgresServer
from tests.processes import descendants
from tests.system.load import wait_until
from tests.system.pipeline_process import PipelineProcess
from tests.system.system import System
from tests.system.test_cluster import PROPERTIES, cluster
from tests.wire.api import Api
from tests.wire.sql import Sql

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

MIB = 1024 * 1024
HEAP = 512 * MIB
MOST_OF_A_WORKER = 1024 * MIB
TOTALS = (
    "create stream per_minute as select k, count(*) as c, sum(n) as s, window_start as at from clicks"
    " group by k window tumbling(at, 1m)"
)


@contextmanager
def system(postgres: PostgresServer, folder: Path, **settings: Any) -> Iterator[System]:
    """A broker and a pipeline of one's own."""
    with postgres.database() as url:
        broker = Broker(url, folder / "broker.log")
        pipeline = PipelineProcess(url, folder / "pipeline", **settings)
        pipeline.start()
        try:
            with Api(broker.url, url) as api:
                pipeline.wait_until_leading()
                yield System(api, url, pipeline)
        finally:
            pipeline.kill()
            broker.stop()


def resident(root: int) -> dict[str, int]:
    """The largest resident memory that Java, and a Python process, have had so far."""
    found = {"java": 0, "python": 0}
    for pid in (root, *descendants(root)):
        try:
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError):
            continue
        status = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
        kind = "java" if status["Name"].startswith("java") else "python"
        found[kind] = max(found[kind], int(status.get("VmHWM", "0 kB").split()[0]) * 1024)
    return found


def test_a_source_larger_than_the_memory_of_spark(
    system_postgres: PostgresServer, tmp_path: Path, full_size: bool
) -> None:
    count = 2_000_000 if full_size else 600_000
    (tmp_path / "in").mkdir()
    padding = "x" * 1000
    with (tmp_path / "in" / "large.json").open("w") as file:
        for first in range(0, count, 10_000):
            for record in clicks(10_000, first):
                file.write(json.dumps({**record, "padding": padding}) + "\n")
    assert (tmp_path / "in" / "large.json").stat().st_size > HEAP
    settings = {"spark_driver_memory": f"{HEAP // MIB}m"}
    with system(system_postgres, tmp_path, **settings) as found:
        sql = Sql(found.api)
        sql(
            f"create source clicks ({COLUMNS}) with"
            f" (connector = 'files', path = '{tmp_path}/in', mode = 'once'); {TOTALS}"
        )
        most = {"java": 0, "python": 0}

        def is_finished() -> bool:
            for kind, size in resident(found.pipeline.process.pid).items():
                most[kind] = max(most[kind], size)
            return bool(sql.job("per_minute")["state"] == "finished")

        assert wait_until(is_finished, within=600, every=0.5), found.pipeline.log()
        assert minutes(rows(found, "per_minute")) == expected(count)
    # In addition to its heap, Java needs memory for code, threads and RocksDB.
    assert most["java"] < HEAP + 512 * MIB, most
    assert most["python"] < MOST_OF_A_WORKER, most


def test_a_cluster_gives_the_same_rows(system_postgres: PostgresServer, tmp_path: Path) -> None:
    count = 30_000
    (tmp_path / "in").mkdir()
    found = clicks(count)
    late = found[100:200]
    write(tmp_path / "in" / "0.json", found[: count // 2])
    write(tmp_path / "in" / "1.json", [*found[count // 2 :], *late])
    properties = tmp_path / "spark.properties"
    properties.write_text(PROPERTIES)
    with (
        cluster(tmp_path, 2) as master,
        system(
            system_postgres, tmp_path, spark_master=master, spark_properties=properties, spark_max_rows=10_000
        ) as running,
    ):
        sql = Sql(running.api)
        sql(
            f"create source clicks ({COLUMNS}) with"
            f" (connector = 'files', path = '{tmp_path}/in', mode = 'once');"
            f"{TOTALS} with (late = 'drop');"
            "create sink odd as select k, n from clicks where n % 2 = 1"
            f" with (connector = 'files', path = '{tmp_path}/out', format = 'json')"
        )
        for name in ("per_minute", "odd"):
            assert wait_until(
                lambda name=name: sql.job(name)["state"] == "finished",  # type: ignore[misc]
                within=400,
            ), running.pipeline.log()
        assert minutes(rows(running, "per_minute")) == expected(count)
        job = sql.job("per_minute")
        assert (job["run"]["records"], job["dropped"]) == (count + len(late), len(late))
        lines = [
            line
            for part in (tmp_path / "out" / "v1").glob("*.json")
            for line in part.read_text().splitlines()
        ]
        wanted = [record["n"] for record in (*found, *late) if record["n"] % 2]  # type: ignore[operator]
        assert sorted(json.loads(line)["n"] for line in lines) == sorted(wanted)  # type: ignore[type-var]
    launched = (tmp_path / "master.log").read_text().count("Launching executor")
    assert launched >= 2
