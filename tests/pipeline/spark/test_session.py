"""The session is configured from the settings, stays on this machine, and reports errors."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from queenspark.pipeline import session as former_path
from queenspark.pipeline.errors import SparkNotStarted
from queenspark.pipeline.spark.properties import read_properties
from queenspark.pipeline.spark.session import session_properties, start_session
from queenspark.settings import Settings, SettingsError


def test_workers_run_this_python_with_one_thread_of_polars(spark: SparkSession) -> None:
    def describe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os

        for _ in batches:
            facts = {"python": [sys.executable], "threads": [os.environ.get("POLARS_MAX_THREADS")]}
            yield pa.RecordBatch.from_pydict(facts)

    row = spark.range(1, numPartitions=1).mapInArrow(describe, "python string, threads string").first()
    assert row is not None
    assert (row.python, row.threads) == (sys.executable, "1")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.session.timeZone", "UTC"),
        ("spark.driver.bindAddress", "127.0.0.1"),
        ("spark.ui.enabled", "false"),
        ("spark.sql.shuffle.partitions", "4"),
        ("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true"),
    ],
)
def test_the_defaults_are_set(spark: SparkSession, name: str, value: str) -> None:
    assert spark.conf.get(name) == value


def test_a_second_session_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(SparkNotStarted, match="runs in this process already"):
        start_session(Settings(data_dir=tmp_path))


def test_a_driver_of_a_cluster_is_not_tied_to_loopback(tmp_path: Path) -> None:
    local = session_properties(Settings(spark_master="local[2]"), tmp_path)
    cluster = session_properties(Settings(spark_master="spark://master:7077"), tmp_path)
    assert "spark.driver.host" in local
    assert "spark.driver.host" not in cluster


def test_properties_are_read_in_every_form(tmp_path: Path) -> None:
    file = tmp_path / "spark.conf"
    file.write_text(
        "# a comment\n\nspark.a  1\nspark.b=2 = two\n  spark.c: 3\nspark.d   x y=z\nspark.e=\n! another\n"
    )
    expected = {"spark.a": "1", "spark.b": "2 = two", "spark.c": "3", "spark.d": "x y=z", "spark.e": ""}
    assert read_properties(file) == expected


def test_a_wrong_line_of_properties_is_named(tmp_path: Path) -> None:
    file = tmp_path / "spark.conf"
    file.write_text("spark.a 1\nmaster local\n")
    with pytest.raises(
        SettingsError, match=r"QUEENSPARK_SPARK_PROPERTIES: line 2 of .*begins with `spark\.`"
    ):
        read_properties(file)


def test_a_missing_file_of_properties_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"QUEENSPARK_SPARK_PROPERTIES.*No such file"):
        read_properties(tmp_path / "none")


START = """
import tempfile
from pathlib import Path
from queenspark.pipeline.errors import SparkNotStarted
from queenspark.pipeline.spark.session import start_session
from queenspark.settings import Settings
try:
    session = start_session(Settings.from_env())
    print(session.conf.get("spark.sql.shuffle.partitions"), session.sparkContext.master)
    print(session.sparkContext._jvm.System.getProperty("java.io.tmpdir"))
    print(len(list(Path(tempfile.gettempdir()).glob("blockmgr-*"))))
except SparkNotStarted as error:
    print(error)
"""


def start(folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Start Spark in a separate process, alongside another Spark, with only these settings."""
    variables = {f"QUEENSPARK_{name.upper()}": value for name, value in settings.items()}
    return subprocess.run(
        [sys.executable, "-c", START],
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
            "SPARK_HOME": "/another/spark",
            "TMPDIR": str(folder),
            "QUEENSPARK_DATA_DIR": str(folder),
            **variables,
        },
        capture_output=True,
        text=True,
        check=True,
    )


def test_properties_win_over_settings_and_the_terminal_stays_clean(tmp_path: Path) -> None:
    folder = tmp_path / 'a "folder" with \\ and blanks'
    folder.mkdir()
    file = folder / "spark.conf"
    file.write_text("spark.sql.shuffle.partitions 7\n")
    done = start(folder, spark_master="local[1]", spark_properties=str(file))
    # Java's temporary files are where TMPDIR says.
    assert done.stdout.splitlines() == ["7 local[1]", str(folder), "1"]
    assert done.stderr == ""
    assert (folder / "spark" / "spark.log").exists()


def test_a_failure_to_start_says_why_and_where_the_log_is(tmp_path: Path) -> None:
    done = start(tmp_path, spark_driver_memory="lots")
    assert "Spark did not start with local[*]" in done.stdout
    assert "lots" in done.stdout
    assert str(tmp_path / "spark" / "spark.log") in done.stdout
    assert done.stderr == ""


@pytest.mark.long
def test_an_unknown_master_is_named(tmp_path: Path) -> None:
    done = start(tmp_path, spark_master="nowhere")
    assert "Spark did not start with nowhere" in done.stdout
    assert "Master must" in done.stdout


def test_programs_written_for_the_former_path_still_start_a_session() -> None:
    assert former_path.start_session is start_session
