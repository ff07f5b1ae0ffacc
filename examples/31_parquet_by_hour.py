"""A queue into Parquet files, one folder per hour, with each row exactly once.

A job counts messages per minute; a sink writes its rows. A file is valid once it is in the sink's log,
which Spark reads automatically. Prints the rows of each folder.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from queenspark import Queen

VIEWS = ["12:00:05", "12:00:40", "12:59:10", "13:00:30", "13:00:50", "13:00:55"]


def committed(folder: Path) -> Iterator[Path]:
    """The files of a sink that are complete: those in its log."""
    for log in (folder / "_spark_metadata").glob("[0-9]*"):
        for line in log.read_text().splitlines()[1:]:
            yield Path(json.loads(line)["path"].removeprefix("file://"))


with Queen() as queen, TemporaryDirectory() as folder:
    files = Path(folder, "v1")
    queen.sql("DROP STREAM IF EXISTS hourly_views CASCADE")
    queen.queue("hourly_views").delete()
    queen.sql(
        "CREATE STREAM hourly_views (at TIMESTAMP) WITH (queue = 'hourly_views');"
        "CREATE STREAM view_minutes AS SELECT COUNT(*) AS views, window_start AS minute FROM hourly_views"
        " WINDOW TUMBLING(at, 1m) WITH (late = 'drop', idle_timeout = '2s');"
        "CREATE SINK view_files FROM view_minutes"
        f" WITH (connector = 'files', path = '{folder}', format = 'parquet', partition_by = 'hour')"
    )
    queen.queue("hourly_views").push([{"at": f"2026-01-31T{view}Z"} for view in VIEWS])
    while sum(pl.read_parquet(file).height for file in set(committed(files))) < 3:
        time.sleep(0.2)
    for hour in sorted(files.glob("hour=*")):
        rows = pl.read_parquet(hour / "*.parquet").sort("minute")
        print(hour.name, [f"{minute:%H:%M}: {views}" for views, minute in rows.iter_rows()])
    queen.sql("DROP STREAM hourly_views CASCADE")
