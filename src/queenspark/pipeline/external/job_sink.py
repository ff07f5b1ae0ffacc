"""External sinks, which write the packed rows of a job."""

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
    """A job's sink: turns packed rows (see `packed_rows.py`) into a stream that Spark writes.

    There is one per connector; `sink_of` selects it.
    """

    def check(self, spark: SparkSession, checkpoint: str) -> None:
        """Refuse to start if that would lose or duplicate rows. Raises JobFailed."""

    def writer(self, rows: DataFrame) -> DataStreamWriter:
        """Return the stream writer, ready to start."""


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

        Spark's file sink skips batches that the folder's metadata already lists. A new checkpoint counts from
        0, so its batches would be lost.
        """
        if _exists(spark, f"{self._path}/{METADATA}") and not _exists(spark, f"{checkpoint}/offsets"):
            raise JobFailed(
                f"{self._path} contains files of another sink, or this sink's checkpoint is lost; replace the"
                " sink to start a new version in a new folder"
            )

    def writer(self, rows: DataFrame) -> DataStreamWriter:
        """Return the stream writer, ready to start."""
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
    """Return the sink of a job by its connector."""
    return KafkaSink(sink) if sink.connector == "kafka" else FilesSink(sink, plan, version)


def _exists(spark: SparkSession, path: str) -> bool:
    """Return whether a file or folder exists, on any file system that Spark supports."""
    jvm: Any = spark._jvm
    found = jvm.org.apache.hadoop.fs.Path(path)
    return bool(found.getFileSystem(spark._jsc.hadoopConfiguration()).exists(found))


def _spark(kind: SqlType) -> str:
    """Return a type in Spark's notation; JSON is STRING."""
    return str(kind).replace(str(JSON), "STRING")
