"""Sinks outside: where the packed rows of a job go."""

from __future__ import annotations

from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from ...connectors.files.sink_check import METADATA
from ...sql import Plan
from ...sql.types import JSON, SqlType
from ...store.definitions import Outside
from ..errors import JobFailed
from .kafka_sink import KafkaSink
from .packed_rows import to_columns

_OPTIONS = {"csv": {"header": "true"}, "json": {"ignoreNullFields": "false"}}


class JobSink(Protocol):
    """A sink of a job: makes of packed rows (see `packed_rows.py`) a stream that Spark writes.

    One for each connector; `sink_of` knows them all.
    """

    def check(self, spark: SparkSession, checkpoint: str) -> None:
        """Refuse to begin where that would lose rows or write them twice. Raises JobFailed."""

    def writer(self, rows: DataFrame) -> DataStreamWriter:
        """The stream, all but started."""


class FilesSink:
    """Spark's own file sink: exactly once, in a folder for each version of the job."""

    def __init__(self, sink: Outside, plan: Plan, version: int) -> None:
        self._options = sink.options
        self._path = f"{sink.options['path'].rstrip('/')}/v{version}"
        self._schema = ", ".join(
            f"`{name.replace('`', '``')}` {_spark(kind)}" for name, kind in plan.columns.items()
        )

    def check(self, spark: SparkSession, checkpoint: str) -> None:
        """Refuse a folder whose files belong to another checkpoint. Raises JobFailed.

        Spark's file sink passes over batches that the folder's list has already: those of a new checkpoint,
        which begins at 0, would be lost.
        """
        if _exists(spark, f"{self._path}/{METADATA}") and not _exists(spark, f"{checkpoint}/offsets"):
            raise JobFailed(
                f"{self._path} has files of another sink, or the checkpoint of this one is lost; replace the"
                " sink to begin a new version in a folder of its own"
            )

    def writer(self, rows: DataFrame) -> DataStreamWriter:
        """The stream, all but started."""
        format_ = self._options.get("format", "parquet")
        columns = rows.select("rows").mapInArrow(to_columns, self._schema)
        stream = (
            columns.writeStream.format(format_)
            .option("path", self._path)
            .options(**_OPTIONS.get(format_, {}))
        )
        names = [name.strip() for name in self._options.get("partition_by", "").split(",") if name.strip()]
        return stream.partitionBy(*names) if names else stream


def sink_of(sink: Outside, plan: Plan, version: int) -> JobSink:
    """The sink of a job, by its connector."""
    return KafkaSink(sink) if sink.connector == "kafka" else FilesSink(sink, plan, version)


def _exists(spark: SparkSession, path: str) -> bool:
    """Whether there is a file or folder, on any file system that Spark knows."""
    jvm: Any = spark._jvm
    found = jvm.org.apache.hadoop.fs.Path(path)
    return bool(found.getFileSystem(spark._jsc.hadoopConfiguration()).exists(found))


def _spark(kind: SqlType) -> str:
    """A type as Spark writes it; JSON is text."""
    return str(kind).replace(str(JSON), "STRING")
