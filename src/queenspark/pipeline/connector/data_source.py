"""The data source `queen`: queues as DataFrames, in any PySpark program."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from ..errors import OptionError
from .messages import SCHEMA
from .options import ReadOptions, WriteOptions
from .sink import QueueBatchWriter, QueueStreamWriter
from .source import QueueBatchReader, QueueStreamReader


def register(spark: SparkSession) -> None:
    """Register `format("queen")` in a session."""
    spark.dataSource.register(QueenDataSource)


class QueenDataSource(DataSource):
    """Reads and writes queues, as a batch and as a stream."""

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return "queen"

    def schema(self) -> str:
        """The columns of messages."""
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        """Read the current content of queues."""
        return QueueBatchReader(ReadOptions.parse(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Read queues continuously."""
        return QueueStreamReader(ReadOptions.parse(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Push rows to a queue."""
        if overwrite:
            raise OptionError('a queue is only ever appended to: use mode("append")')
        return QueueBatchWriter(WriteOptions.parse(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """Push the rows of every batch to a queue."""
        if overwrite:
            raise OptionError('a queue is only ever appended to: use outputMode("append")')
        return QueueStreamWriter(WriteOptions.parse(self.options), schema)
