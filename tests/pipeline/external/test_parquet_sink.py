"""Parquet files written by tasks: those of Spark's own sink, for every reader of its metadata log."""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from queenspark.connectors.errors import WriteFailed
from queenspark.pipeline.external.files_sink import FilesSink
from queenspark.pipeline.external.job_sink import JobSink, sink_of
from queenspark.pipeline.external.packed_rows import Emit
from queenspark.pipeline.external.parquet_sink import ParquetSink
from queenspark.sql.types import SqlType
from queenspark.store.definitions import Outside
from tests.external.sinks import listed_files

LONG = SqlType("BIGINT")
TYPES: dict[str, tuple[SqlType, Any]] = {
    "boolean": (SqlType("BOOLEAN"), True),
    "tinyint": (SqlType("TINYINT"), -128),
    "smallint": (SqlType("SMALLINT"), 32767),
    "int": (SqlType("INT"), -(2**31)),
    "bigint": (LONG, 2**63 - 1),
    "float": (SqlType("FLOAT"), 0.5),
    "double": (SqlType("DOUBLE"), float("-inf")),
    "string": (SqlType("STRING"), "ü\n\x00"),
    "json": (SqlType("JSON"), '{"a":1}'),
    "date": (SqlType("DATE"), date(1999, 12, 31)),
    "old date": (SqlType("DATE"), date(1500, 2, 28)),
    "timestamp": (SqlType("TIMESTAMP"), datetime(2026, 1, 31, 12, 0, 0, 1, UTC)),
    "small decimal": (SqlType("DECIMAL", 10, 2), Decimal("-1.25")),
    "large decimal": (SqlType("DECIMAL", 38, 6), Decimal("12345678901234567890.000001")),
    "array": (SqlType("ARRAY", element=LONG), [1, None]),
    "nested array": (SqlType("ARRAY", element=SqlType("ARRAY", element=SqlType("STRING"))), [["a"], []]),
    "null": (SqlType("NULL"), None),
    "interval": (SqlType("INTERVAL"), None),
}


def sink(spark: SparkSession, folder: Path, columns: dict[str, SqlType], **options: str) -> JobSink:
    """The sink of the first version of a job."""
    return sink_of(spark, Outside("out", "files", {"path": str(folder), **options}), columns, 1)


def packed(columns: dict[str, pl.Series]) -> pl.DataFrame:
    """Rows as the last stage of a job emits them."""
    payload = pl.DataFrame(columns).to_struct("payload")
    texts = {name: [""] * len(payload) for name in ("key", "transaction_id", "headers")}
    return pl.DataFrame({**texts, "payload": payload})


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({}, ParquetSink),
        ({"format": "json"}, FilesSink),
        ({"partition_by": "n"}, FilesSink),
    ],
    ids=str,
)
def test_local_parquet_without_partitions_is_written_by_the_tasks(
    spark: SparkSession, options: dict[str, str], kind: type[FilesSink]
) -> None:
    assert type(sink(spark, Path("/out"), {"n": LONG}, **options)) is kind


@pytest.mark.parametrize("name", TYPES)
def test_spark_reads_the_type_and_the_value(spark: SparkSession, tmp_path: Path, name: str) -> None:
    kind, value = TYPES[name]
    columns = {"n": LONG, "x": kind}
    given = sink(spark, tmp_path, columns)
    if name in ("null", "interval"):
        assert type(given) is FilesSink, "Spark's Parquet has its own form of these, or none"
        return
    values = pl.Series([value, None], dtype=kind.column)
    (tmp_path / "v1").mkdir()
    (file,) = given.emit(packed({"n": pl.Series([1, 2]), "x": values}))
    path = (tmp_path / "v1" / file.decode()).rename(tmp_path / "a.parquet")
    found = spark.read.option("datetimeRebaseMode", "EXCEPTION").parquet(str(path)).orderBy("n")
    assert found.schema["x"].dataType.simpleString() == str(kind).lower().replace(", ", ",").replace(
        "json", "string"
    )
    arrow = pl.DataFrame(found.toArrow())["x"]
    assert arrow.to_list() == [value, None]


def emitting(emit: Emit) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A stage that emits its input lines as rows."""

    def stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            numbers = pl.Series(batch.column("value").to_pylist(), dtype=pl.String).cast(pl.Int64)
            yield pa.record_batch([pa.array(list(emit(packed({"n": numbers}))), pa.binary())], ["rows"])

    return stage


def run(spark: SparkSession, folder: Path, sink: JobSink) -> None:
    """Process the lines of the files in a folder, a batch for each."""
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(f"{folder}/in")
    rows = lines.repartition(1).mapInArrow(emitting(sink.emit), "rows binary")
    stream = sink.writer(rows).option("checkpointLocation", f"{folder}/checkpoint")
    stream.trigger(availableNow=True).start().awaitTermination()


def test_batches_are_written_once_also_after_a_crash_before_the_commit(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark runs the batch again; the folder then has no files but those listed."""
    (tmp_path / "in").mkdir()
    out = tmp_path / "out of order" / "v1"
    for first in (0, 2):
        (tmp_path / "in" / f"{first}.txt").write_text(f"{first}\n{first + 1}\n")
        run(spark, tmp_path, sink(spark, out.parent, {"n": LONG}))
    before = sorted(out.glob("*.parquet"))
    assert len(before) == 2
    assert {path.stat().st_mode & 0o777 for path in before} == {0o644}
    (out / ".part-of-a-failed-batch").touch()
    for commit in (tmp_path / "checkpoint" / "commits").glob("*1*"):
        commit.unlink()
    (tmp_path / "in" / "4.txt").write_text("4\n")
    run(spark, tmp_path, sink(spark, out.parent, {"n": LONG}))
    assert sorted(out.glob("*"))[1:] == sorted(listed_files(out))
    assert set(before) < set(listed_files(out))
    assert sorted(row[0] for row in spark.read.parquet(str(out)).collect()) == [0, 1, 2, 3, 4]


def test_it_continues_the_folder_of_sparks_own_sink(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    sinks = [sink(spark, tmp_path / "out", {"n": LONG}) for _ in range(2)]
    own = FilesSink(Outside("out", "files", {"path": str(tmp_path / "out")}), {"n": LONG}, 1)
    for number, each in enumerate([own, sinks[0], own, sinks[1]] * 3):
        (tmp_path / "in" / f"{number}.txt").write_text(f"{number}\n")
        run(spark, tmp_path, each)
    found = spark.read.parquet(str(tmp_path / "out" / "v1")).collect()
    assert sorted(row[0] for row in found) == list(range(12))
    assert list((tmp_path / "out" / "v1" / "_spark_metadata").glob("*.compact")), "also a compacted list"


def test_a_folder_that_cannot_be_written_is_named(spark: SparkSession, tmp_path: Path) -> None:
    given = sink(spark, tmp_path / "out", {"n": LONG})
    with pytest.raises(WriteFailed, match=f"{tmp_path}/out/v1 cannot be written: No such file or directory"):
        list(given.emit(packed({"n": pl.Series([1])})))


def test_a_full_disk_is_named_and_leaves_no_file(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = sink(spark, tmp_path, {"n": LONG})
    (tmp_path / "v1").mkdir()
    write = pl.DataFrame.write_parquet

    def full(frame: pl.DataFrame, path: Path, **options: Any) -> None:
        path.touch()
        write(frame, "/dev/full", **options)

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    with pytest.raises(WriteFailed, match="No space left on device"):
        list(given.emit(packed({"n": pl.Series([1])})))
    assert list((tmp_path / "v1").iterdir()) == []
