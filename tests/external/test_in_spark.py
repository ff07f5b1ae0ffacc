"""Jobs over files in Spark; one pipeline process is killed again and again."""

import json
import random
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.broker_process import Broker
from tests.external.s3 import s3_server
from tests.external.sinks import listed_files
from tests.external.test_files import BEGIN, COLUMNS, Totals, clicks, expected, minutes
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
        broker = Broker(url, folder / "broker.log", external_jobs=6)
        pipeline = PipelineProcess(url, folder / "pipeline", spark_max_rows=1000, external_jobs=6)
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


def write(path: Path, records: Sequence[dict[str, object] | str]) -> None:
    """A file that appears at once."""
    part = path.with_name(f".{path.name}")
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    part.write_text("".join(line + "\n" for line in lines))
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
        f" with (connector = 'files', path = '{tmp_path}/out', partition_by = 'k');"
        "create sink whole as select k, count(*) as c, sum(n) as s, window_start as at from inputs"
        f" group by k window tumbling(at, 1m) with (connector = 'files', path = '{tmp_path}/whole')"
    )
    for name in ("outputs", "whole"):
        assert wait_until(lambda name=name: sql.job(name)["state"] == "finished", within=500), (  # type: ignore[misc]
            system.pipeline.log()
        )
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
    files = listed_files(tmp_path / "whole" / "v1")
    assert sorted(files) == sorted((tmp_path / "whole" / "v1").glob("*"))[1:], "nothing else but the list"
    shown = pl.read_parquet(files).with_columns(pl.col("at").dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ")).to_dicts()
    assert minutes(shown) == expected(3000)
    assert len(shown) == len(expected(3000))
    written = set(checkpoints.iterdir()) - known
    assert len(written) == 2
    sql("drop sink outputs; drop sink whole; drop source inputs")
    assert wait_until(lambda: not written & set(checkpoints.iterdir()), within=120), system.pipeline.log()
    sql.api.http.close()


def stamp(seconds: int) -> str:
    """A time of clicks as the rows have it."""
    return (BEGIN + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def sliding(count: int) -> Totals:
    """The totals of clicks in windows of 60 s, by 20 s."""
    totals: dict[tuple[object, object], list[int]] = {}
    for n in range(count):
        for start in range(n // 20 * 20 - 40, n + 1, 20):
            totals.setdefault((f"k{n % 3}", stamp(start)), []).append(n)
    return {key: (len(values), sum(values)) for key, values in totals.items()}


def sessions(count: int) -> Totals:
    """The totals of the first 50 of each 100 clicks, in sessions with a gap of 20 s."""
    totals: dict[tuple[object, object], list[int]] = {}
    for n in range(count):
        if n % 100 < 50:
            begin = n // 100 * 100
            first = begin + (n - begin) % 3
            totals.setdefault((f"k{n % 3}", stamp(first)), []).append(n)
    return {key: (len(values), sum(values)) for key, values in totals.items()}


def changes(count: int) -> list[tuple[str, str, int, int]]:
    """The running totals of clicks in their minutes."""
    found: list[tuple[str, str, int, int]] = []
    totals: dict[tuple[str, str], tuple[int, int]] = {}
    for n in range(count):
        window = (f"k{n % 3}", stamp(n // 60 * 60))
        c, s = totals.get(window, (0, 0))
        totals[window] = (c + 1, s + n)
        found.append((*window, *totals[window]))
    return found


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
    bad = [f"{{bad {number}" for number in range(20)]
    write(tmp_path / "once" / "3.json", [*bad[:10], *clicks(3000, count), *bad[10:]])
    count += 3000
    sql = Sql(victim.api)
    totals = "select k, count(*) as c, sum(n) as s, window_start as at from clicks"
    sql(
        f"create source clicks ({COLUMNS}) with ({at}/once', mode = 'once');"
        f"create source watched ({COLUMNS}) with ({at}/watched');"
        f"create stream per_minute as {totals} group by k window tumbling(at, 1m);"
        f"create stream sliding as {totals} group by k window sliding(at, 60s, 20s);"
        f"create stream visits as {totals} where n % 100 < 50 group by k window session(at, 20s);"
        f"create stream changing as {totals} group by k window tumbling(at, 1m) emit changes;"
        "create stream running as select k, n, sum(n) over (rows window buffer 10 rows partition by k) as s"
        " from clicks;"
        "create stream odd as select n from watched where n % 2 = 1 with (partition_by = 'n')"
    )
    for number in range(kills):
        if number == kills // 2:
            write(tmp_path / "watched" / "between.json", [*bad, *clicks(100, 100_000)])
        victim.pipeline.wait_until_leading()
        before = len(rows(victim, "odd"))
        wait_until(lambda before=before: len(rows(victim, "odd")) > before, within=60)  # type: ignore[misc]
        time.sleep(chance.uniform(0, 2))
        victim.pipeline.kill()
        victim.pipeline.start()
    write(tmp_path / "watched" / "later.json", clicks(100, 200_000))
    watched = [*range(count - 3000), *range(100_000, 100_100), *range(200_000, 200_100)]
    wanted = [n for n in watched if n % 2]
    finite = ("per_minute", "sliding", "visits", "changing", "running")

    def is_done() -> bool:
        states = {sql.job(name)["state"] for name in finite}
        return states == {"finished"} and len(rows(victim, "odd")) >= len(wanted)

    assert wait_until(is_done, within=300, every=0.5), victim.pipeline.log()
    for name, windows in (("per_minute", expected), ("sliding", sliding), ("visits", sessions)):
        found = rows(victim, name)
        assert minutes(found) == windows(count), name
        assert len(found) == len(windows(count)), name
    found = rows(victim, "changing")
    assert sorted((row["k"], row["at"], row["c"], row["s"]) for row in found) == sorted(changes(count))
    assert sorted(row["n"] for row in rows(victim, "odd")) == wanted
    assert sorted((row["n"], row["s"]) for row in rows(victim, "running")) == [
        (n, sum(range(n, max(-1, n - 30), -3))) for n in range(count)
    ]
    for name in (*finite, "odd"):
        assert sql.job(name)["dead"] == len(bad), name
    job = sql.job("per_minute")
    assert (job["run"]["files"], job["run"]["records"]) == (4, count)
    assert sql.job("odd")["state"] == "running"


@pytest.mark.long
@pytest.mark.timeout(900)
def test_objects_of_s3_are_read_and_no_log_has_their_keys(victim: System) -> None:
    """Also not when the keys stop working, which fails the job in Spark until they work again."""
    sql = Sql(victim.api)
    victim.pipeline.wait_until_leading()
    with s3_server() as s3:
        s3.put("b", "in/a.json", "".join(json.dumps(each) + "\n" for each in clicks(3000)))
        path = s3.url("b/in")
        sql(
            f"create source objects ({COLUMNS}) with (connector = 'files', path = '{path}');"
            "create stream of_objects as select n from objects with (partition_by = 'n')"
        )
        assert wait_until(lambda: len(rows(victim, "of_objects")) == 3000, within=300), victim.pipeline.log()
        secret, s3.secret_key = s3.secret_key, "another"
        reasons: list[str] = []  # a restarted query has none for some seconds

        def has_failed() -> bool:
            reasons.extend(filter(None, [sql.job("of_objects")["lastError"]]))
            return bool(reasons)

        assert wait_until(has_failed, within=120), victim.pipeline.log()
        reason = reasons[0]
        assert "s3://AKIATEST:…@b/in" in reason
        assert "ACCESS_DENIED" in reason
        s3.secret_key = secret
        s3.put("b", "in/b.json", "".join(json.dumps(each) + "\n" for each in clicks(100, 3000)))
        assert wait_until(lambda: len(rows(victim, "of_objects")) == 3100, within=300), victim.pipeline.log()
        sql("drop stream of_objects; drop source objects")
    logs = [path for path in victim.pipeline.folder.rglob("*.log") if path.is_file()]
    assert logs
    assert not [path for path in logs if "tiger" in path.read_text(errors="replace")]
    assert "tiger" not in reason
