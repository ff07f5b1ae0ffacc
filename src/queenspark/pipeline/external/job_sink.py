"""External sinks, which write the rows of a job."""

from __future__ import annotations

from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from ...sql.types import SqlType
from ...store.definitions import Outside
from .files_sink import FilesSink
from .kafka_sink import KafkaSink
from .packed_rows import Emit
from .parquet_sink import ParquetSink


class JobSink(Protocol):
    """A job's sink, selected by `sink_of`."""

    #: Runs in the tasks that compute the rows.
    emit: Emit

    def check(self, spark: SparkSession, checkpoint: str) -> None:
        """Refuse to start if that would lose or duplicate rows. Raises JobFailed."""

    def writer(self, rows: DataFrame) -> DataStreamWriter:
        """Return the writer of the stream of emitted values, ready to start."""


def sink_of(spark: SparkSession, sink: Outside, columns: dict[str, SqlType], version: int) -> JobSink:
    """Return the sink of a job."""
    if sink.connector == "kafka":
        return KafkaSink(sink)
    kind = ParquetSink if ParquetSink.can_write(spark, sink, columns) else FilesSink
    return kind(sink, columns, version)
