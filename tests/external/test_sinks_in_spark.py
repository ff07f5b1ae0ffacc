"""Sinks of streams in Spark: files exactly once, through kills, pauses and replacements."""

import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from tests.broker_process import Broker
from tests.external.sinks import listed_files
from tests.postgres_servers import PostgresServer
from tests.system.load import wait_until
from tests.system.pipeline_process import PipelineProcess
from tests.system.system import System
from tests.wire.api import Api
from tests.wire.sql import Sql

pytestmark = [pytest.mark.crash, pytest.mark.long]

COLUMNS = "k string, n bigint"


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


def push(system: System, first: int, count: int) -> None:
    """Numbers of three keys; one in a thousand does not fit."""
    for start in range(first, first + count, 5000):
        numbers = range(start, min(start + 5000, first + count))
        system.api.push("numbers", *({"k": f"k{n % 3}", "n": "x" if n % 1000 == 7 else n} for n in numbers))


def fitting(count: int) -> list[int]:
    """The numbers that fit."""
    return [n for n in range(count) if n % 1000 != 7]


def parquet(folder: Path) -> list[int]:
    """The numbers in the files of a version, in which the key is a folder."""
    if not (folder / "_spark_metadata").exists():
        return []
    found: list[int] = []
    for path in listed_files(folder):
        numbers = pl.read_parquet(path)["n"].to_list()
        assert {f"k={'k'}{n % 3}" for n in numbers} <= {path.parent.name}
        found += numbers
    return sorted(found)


def whole(folder: Path) -> list[int]:
    """The numbers in the Parquet files of a version without partitions."""
    if not (folder / "_spark_metadata").exists():
        return []
    return sorted(n for path in listed_files(folder) for n in pl.read_parquet(path)["n"].to_list())


def json_lines(folder: Path) -> list[int]:
    """The numbers in the files of a version."""
    if not (folder / "_spark_metadata").exists():
        return []
    files = [path for path in listed_files(folder) if path.stat().st_size]
    return sorted(n for path in files for n in pl.read_ndjson(path)["n"].to_list())


@pytest.mark.timeout(900)
def test_every_row_once_after_any_kill(victim: System, tmp_path: Path, full_size: bool) -> None:
    kills, count = (8, 60_000) if full_size else (1, 6_000)
    chance = random.Random(11)
    sql = Sql(victim.api)
    push(victim, 0, count)
    by_key, plain, parquets = tmp_path / "by_key", tmp_path / "plain", tmp_path / "parquets"
    sql(
        f"create stream numbers_declared ({COLUMNS}) with (queue = 'numbers');"
        "create sink by_key from numbers_declared"
        f" with (connector = 'files', path = '{by_key}', partition_by = 'k');"
        "create sink plain from numbers_declared"
        f" with (connector = 'files', path = '{plain}', format = 'json');"
        f"create sink parquets from numbers_declared with (connector = 'files', path = '{parquets}')"
    )
    for _ in range(kills):
        victim.pipeline.wait_until_leading()
        before = len(parquet(by_key / "v1"))
        wait_until(lambda before=before: len(parquet(by_key / "v1")) > before, within=60)  # type: ignore[misc]
        time.sleep(chance.uniform(0, 2))
        victim.pipeline.kill()
        victim.pipeline.start()
    wanted = fitting(count)
    done = wait_until(
        lambda: (
            min(map(len, (parquet(by_key / "v1"), json_lines(plain / "v1"), whole(parquets / "v1"))))
            >= len(wanted)
        ),
        within=240,
        every=0.5,
    )
    assert done, victim.pipeline.log()
    assert parquet(by_key / "v1") == wanted
    assert json_lines(plain / "v1") == wanted
    assert whole(parquets / "v1") == wanted
    for name in ("by_key", "plain", "parquets"):
        job = sql.job(name)
        assert (job["state"], job["runsIn"], job["dead"], job["lastError"]) == (
            "running", "own query", count // 1000, None,
        )  # fmt: skip

    # Paused, it writes nothing; then it continues. Replaced, it writes everything to another folder.
    sql("pause job by_key")
    push(victim, count, 2000)
    wanted = fitting(count + 2000)
    assert wait_until(lambda: len(json_lines(plain / "v1")) >= len(wanted), within=60)
    assert len(parquet(by_key / "v1")) == len(fitting(count))
    sql(
        "resume job by_key;"
        f"create or replace sink plain from numbers_declared with (connector = 'files', path = '{plain}',"
        " format = 'json', metadata = '_partition')"
    )
    assert wait_until(lambda: len(parquet(by_key / "v1")) >= len(wanted), within=90), victim.pipeline.log()
    assert wait_until(lambda: len(json_lines(plain / "v2")) >= len(wanted), within=90), victim.pipeline.log()
    assert parquet(by_key / "v1") == wanted
    assert json_lines(plain / "v1") == wanted
    assert json_lines(plain / "v2") == wanted
    sql("drop sink plain; drop sink by_key; drop sink parquets")


@pytest.mark.timeout(300)
def test_a_lost_checkpoint_is_reported_and_loses_nothing(victim: System, tmp_path: Path) -> None:
    """Spark's file sink would pass over the first batches of a new checkpoint."""
    victim.api.push("few", *({"n": n} for n in range(10)))
    sql = Sql(victim.api)
    out = tmp_path / "few"
    sql(
        "create stream few_declared (n bigint) with (queue = 'few');"
        f"create sink few_files from few_declared with (connector = 'files', path = '{out}', format = 'json')"
    )
    victim.pipeline.wait_until_leading()
    assert wait_until(lambda: len(json_lines(out / "v1")) == 10, within=90), victim.pipeline.log()
    victim.pipeline.kill()
    shutil.rmtree(victim.pipeline.folder / "checkpoint" / "jobs")
    victim.api.push("few", *({"n": n} for n in range(10, 20)))
    victim.pipeline.start()
    said = "this sink's checkpoint is lost"
    assert wait_until(lambda: said in (sql.job("few_files")["lastError"] or ""), within=90)
    assert len(json_lines(out / "v1")) == 10
    sql(
        f"create or replace sink few_files from few_declared with (connector = 'files', path = '{out}',"
        " format = 'json', metadata = '_partition')"
    )
    assert wait_until(lambda: len(json_lines(out / "v2")) == 20, within=90), victim.pipeline.log()
