"""`python -m bench.files`: SQL over files compared with hand-written queries of plain Spark, in one run.

Run by `make bench`. Both read the same Parquet files and write Parquet; all rows are compared with those that
polars computes (see file_results.py). Rates are those after the first batch: before its end, either side
starts processes and compiles for seconds.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

import httpx2
import polars as pl
import typer
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from bench import file_results
from bench.file_results import changes, check_plain, check_rows, rolling, sessions, time_windows
from bench.machine import Machine, running_machine
from bench.running import Run, watch
from bench.sheet import Sheet
from queenspark.pipeline import start_session
from queenspark.pipeline.external.job_query import JobQuery
from queenspark.pipeline.spark.local_checkpoints import speed_up_local_checkpoints
from queenspark.settings import Settings
from queenspark.store.pipeline import PipelineStore

RECORDS = 4_000_000
WARM_UP = 1_000_000
FILE_ROWS = 1_000_000
BATCH_ROWS = 1_000_000

FIVE = "COUNT(*) AS c, SUM(value) AS s, MIN(value) AS lo, MAX(value) AS hi, AVG(value) AS mean"
Plain = Callable[[DataFrame], DataFrame]


class Work(NamedTuple):
    """A workload: the keys of its records, our query, plain Spark's, and the target in million records/s.

    `wanted` computes the rows from the records.
    """

    name: str
    keys: int
    query: str
    plain: Plain | None
    target: str
    wanted: Callable[[pl.DataFrame], pl.DataFrame]


def _five() -> list[Column]:
    return [
        f.count("*").alias("c"), f.sum("value").alias("s"), f.min("value").alias("lo"),
        f.max("value").alias("hi"), f.avg("value").alias("mean"),
    ]  # fmt: skip


def _windows(*window: str) -> Plain:
    def plain(records: DataFrame) -> DataFrame:
        late = records.withWatermark("at", "0 seconds")
        return late.groupBy(f.window("at", *window), "key").agg(*_five())

    return plain


def _sessions(records: DataFrame) -> DataFrame:
    late = records.withWatermark("at", "0 seconds")
    return late.groupBy(f.session_window("at", "5 seconds"), "key").agg(*_five())


_SLIDING, _SESSION = "SLIDING(at, 60s, 10s)", "SESSION(at, 5s)"
_MINUTES = f"SELECT key, {FIVE}, window_start AS start FROM {{source}} GROUP BY key WINDOW TUMBLING(at, 1m)"
_in_minutes = partial(time_windows, seconds=60, slide=60)
WORKS = [
    Work("W1 tumbling 1 min, final", 5_000, _MINUTES, _windows("1 minute"), "1.1", _in_minutes),
    Work("W1 tumbling 1 min, final", 200_000, _MINUTES, _windows("1 minute"), "1.1", _in_minutes),
    Work(
        "W2 tumbling 1 min, changes", 5_000, f"{_MINUTES} EMIT CHANGES", None, "0.5",
        partial(changes, seconds=60),
    ),
    Work(
        "W3 sliding 60 s by 10 s, final", 5_000, _MINUTES.replace("TUMBLING(at, 1m)", _SLIDING),
        _windows("60 seconds", "10 seconds"), "0.5", partial(time_windows, seconds=60, slide=10),
    ),
    Work(
        "W4 session 5 s, final", 200_000, _MINUTES.replace("TUMBLING(at, 1m)", _SESSION), _sessions, "0.5",
        partial(sessions, gap=5),
    ),
    Work(
        "W5 rows buffer of 100, average", 5_000,
        "SELECT key, 1 AS c, value AS s,"
        " AVG(value) OVER (ROWS WINDOW BUFFER 100 ROWS PARTITION BY key) AS mean FROM {source}", None, "0.3",
        partial(rolling, size=100),
    ),
]  # fmt: skip


def write(folder: Path, records: int, keys: int) -> None:
    """Files of records, a millisecond apart.

    Values are quarters, so that sums are exact in any order, and differ within a key: 1009 is prime.
    """
    folder.mkdir(parents=True)
    for number, first in enumerate(range(0, records, FILE_ROWS)):
        seq = pl.int_range(first, min(first + FILE_ROWS, records), eager=True)
        frame = pl.DataFrame({"seq": seq}).select(
            "seq",
            pl.format("k{}", pl.col("seq") * 7919 % keys).alias("key"),
            pl.from_epoch(pl.col("seq") + 1_769_860_800_000, "ms").dt.replace_time_zone("UTC").alias("at"),
            (pl.col("seq") % 1009 * 0.25).alias("value"),
        )
        path = folder / f"{number:04}.parquet"
        frame.write_parquet(path, row_group_size=250_000)
        os.utime(path, (number + 1, number + 1))  # in their order


def sql(machine: Machine, statement: str) -> None:
    """Statements that must succeed."""
    httpx2.post(f"{machine.url}/api/v1/sql", json={"sql": statement}, timeout=60.0).raise_for_status()


def ours(machine: Machine, spark: SparkSession, work: Work, folder: Path, to: Path, epoch: int) -> Run:
    """Measure our query."""
    sql(
        machine,
        "CREATE OR REPLACE SOURCE records (seq BIGINT, key STRING, at TIMESTAMP, value DOUBLE)"
        f" WITH (connector = 'files', format = 'parquet', mode = 'once', path = '{folder}');"
        f"CREATE SINK rows_out AS {work.query.format(source='records')}"
        f" WITH (connector = 'files', path = '{to}')",
    )
    with PipelineStore(machine.database_url) as store:
        (definition,) = store.wanted_jobs()
        job = JobQuery(
            machine.database_url, definition, checkpoints=str(to) + "-checkpoint", max_rows=BATCH_ROWS
        )
        query = job.start(spark, epoch)
        run = watch(query, lambda: not store.wanted_jobs(), machine.postgres_pid)
    query.stop()
    job.close()
    sql(machine, "DROP SINK rows_out")
    return run


def plain_spark(number: int, phases: list[tuple[Path, Path]]) -> Run:
    """Measure plain Spark in its own process."""
    folders = [str(folder) for phase in phases for folder in phase]
    script = [sys.executable, "-m", "bench.plain_files", str(number), *folders]
    found = subprocess.run(script, check=True, stdout=subprocess.PIPE)
    return Run(**json.loads(found.stdout.splitlines()[-1]))


def _rates(records: int, run: Run) -> str:
    """Million records/s after the first batch and over the whole run, and processor seconds per million."""
    first = min(FILE_ROWS, records)
    rest = records - first
    cost = ", ".join(f"{part} {spent * 1e6 / max(rest, 1):.2f}" for part, spent in sorted(run.used.items()))
    running = f"{rest / run.running / 1e6:.2f}" if rest else "?"
    return f"{running} ({records / run.seconds / 1e6:.2f} with its start; {cost} s/M)"


@contextmanager
def leading(machine: Machine) -> Iterator[int]:
    """Lead within this block; yield the epoch."""
    with PipelineStore(machine.database_url) as store:
        yield store.lead("bench", 86_400.0).epoch
        store.resign("bench")


def main(
    records: Annotated[int, typer.Option(help="Records of each work.")] = RECORDS,
    only: Annotated[str, typer.Option(metavar="W1", help="Only works whose names begin so.")] = "W",
) -> None:
    """Measure and print."""
    sheet = Sheet("SQL over files on this machine, million records a second, compared with plain Spark")
    with (
        running_machine() as machine,
        leading(machine) as epoch,
        tempfile.TemporaryDirectory(prefix="queenspark-bench-") as name,
        sheet.progress.status("measuring files"),
    ):
        base = Path(name)
        spark = start_session(Settings(data_dir=base / "spark", spark_driver_memory="3g"))
        speed_up_local_checkpoints(spark, str(base))  # as the pipeline does
        for number, work in enumerate(WORKS):
            if not work.name.startswith(only):
                continue
            own = base / str(number)
            for size, phase in ((min(WARM_UP, records), "warm"), (records, "full")):
                data = own / phase / "data"
                write(data, size, work.keys)
                run = ours(machine, spark, work, data, own / phase / "ours", epoch)
            found, given = file_results.rows(own / "full" / "ours"), file_results.records(data)
            wanted, last, rows = work.wanted(given), given["at"].max(), found.height
            check_rows(found, wanted)
            del found, given  # millions of rows
            comparison = "plain Spark cannot"
            if work.plain is not None:
                phases = [(own / phase / "data", own / phase / "plain") for phase in ("warm", "full")]
                plain = plain_spark(number, phases)
                plain_rows = check_plain(own / "full" / "plain", wanted, last)
                comparison = f"plain Spark {_rates(records, plain)}, {plain_rows:,} rows"
            sheet.row(
                f"{work.name}, {work.keys:,} keys, {rows:,} rows",
                _rates(records, run),
                comparison,
                work.target,
            )
            shutil.rmtree(own)
        spark.stop()
    sheet.show()


if __name__ == "__main__":
    typer.run(main)
