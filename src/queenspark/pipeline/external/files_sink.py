"""Spark's own file sink: exactly once, in a folder for each version of the job."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from ...connectors.files.sink_check import METADATA
from ...sql.types import JSON, SqlType
from ...store.definitions import Outside
from ..errors import JobFailed
from .packed_rows import Emit, packed_rows, to_columns

_OPTIONS = {"csv": {"header": "true"}, "json": {"ignoreNullFields": "false"}}


class FilesSink:
    """Writes any format to any file system that Spark supports."""

    def __init__(self, sink: Outside, columns: dict[str, SqlType], version: int) -> None:
        self._options = sink.options
        self._path = f"{sink.options['path'].rstrip('/')}/v{version}"
        self._schema = ", ".join(
            f"`{name.replace('`', '``')}` {_spark(kind)}" for name, kind in columns.items()
        )
        self.emit: Emit = packed_rows

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
        """Return the writer of the stream of packed rows, ready to start."""
        columns = rows.select("rows").mapInArrow(to_columns, self._schema)
        stream = (
            columns.writeStream.format(self._format)
            .option("path", self._path)
            .options(**_OPTIONS.get(self._format, {}))
        )
        return stream.partitionBy(*self._partition_by) if self._partition_by else stream

    @property
    def _format(self) -> str:
        return self._options.get("format", "parquet")

    @property
    def _partition_by(self) -> list[str]:
        names = self._options.get("partition_by", "").split(",")
        return [name.strip() for name in names if name.strip()]


def file_system_of(spark: SparkSession, path: str) -> tuple[Any, Any]:
    """Return Hadoop's file system and Hadoop's form of a path or URL."""
    jvm: Any = spark._jvm
    hadoop_path = jvm.org.apache.hadoop.fs.Path(path)
    return hadoop_path.getFileSystem(spark._jsc.hadoopConfiguration()), hadoop_path


def _exists(spark: SparkSession, path: str) -> bool:
    files, hadoop_path = file_system_of(spark, path)
    return bool(files.exists(hadoop_path))


def _spark(kind: SqlType) -> str:
    """Return a type in Spark's notation; JSON is STRING."""
    return str(kind).replace(str(JSON), "STRING")
