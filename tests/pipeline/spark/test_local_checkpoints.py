"""Checkpoints on a local file system are written faster; others as Spark writes them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from queenspark.pipeline.spark.local_checkpoints import speed_up_local_checkpoints

MANAGER = "spark.sql.streaming.checkpointFileManagerClass"


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, which has Spark's default before and after the test."""
    default = spark.sparkContext._jsc.hadoopConfiguration().get("fs.defaultFS")
    yield spark
    spark.sparkContext._jsc.hadoopConfiguration().set("fs.defaultFS", default)
    spark.conf.unset(MANAGER)


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_query_writes_no_checksum_files(session: SparkSession, tmp_path: Path, scheme: str) -> None:
    checkpoint = f"{scheme}{tmp_path}/checkpoint"
    speed_up_local_checkpoints(session, checkpoint)
    assert "FileSystemBasedCheckpointFileManager" in str(session.conf.get(MANAGER))
    rows = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    writing = rows.writeStream.format("noop").option("checkpointLocation", checkpoint)
    query = writing.trigger(availableNow=True).start()
    assert query.awaitTermination(60)
    names = {path.name for path in (tmp_path / "checkpoint").rglob("*") if path.is_file()}
    assert "metadata" in names
    assert not [name for name in names if name.endswith(".crc")]


@pytest.mark.parametrize(("default", "checkpoint"), [
    ("file:///", "viewfs:///checkpoint"), ("viewfs:///", "/checkpoint"),
])  # fmt: skip
def test_other_file_systems_keep_the_default(session: SparkSession, default: str, checkpoint: str) -> None:
    configuration = session.sparkContext._jsc.hadoopConfiguration()
    configuration.set("fs.defaultFS", default)
    configuration.set("fs.viewfs.mounttable.default.link./checkpoint", "file:///tmp")
    speed_up_local_checkpoints(session, checkpoint)
    assert session.conf.get(MANAGER, "default") == "default"
