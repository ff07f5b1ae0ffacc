"""A sink of Parquet files in a local folder, written by the tasks that compute the rows.

Spark's own writer receives one row at a time from Python, which takes as long as computing it. Here, Polars
writes whole columns, and Spark only lists the files of each batch in its metadata log, as its own file sink
does. Either sink can therefore continue the other's folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import polars as pl
from pyspark import __version__
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col
from pyspark.sql.streaming.readwriter import DataStreamWriter

from ...connectors.errors import WriteFailed
from ...connectors.files.sink_check import METADATA
from ...sql.types import SqlType
from ...store.definitions import Outside
from ..errors import JobFailed
from .files_sink import FilesSink, file_system_of
from .packed_rows import Emit

_HIDDEN = ".part-"
_FOOTER = {"org.apache.spark.version": __version__}
"""Spark then knows that old dates are those of the Gregorian calendar."""


class ParquetSink(FilesSink):
    """Writes exactly once, for readers of Spark's metadata log."""

    def __init__(self, sink: Outside, columns: dict[str, SqlType], version: int) -> None:
        super().__init__(sink, columns, version)
        self._folder = Path(self._path.removeprefix("file://"))
        self.emit: Emit = partial(_write, self._folder)

    @staticmethod
    def can_write(spark: SparkSession, sink: Outside, columns: dict[str, SqlType]) -> bool:
        """Return whether this class can be the sink: local Parquet files without partitions.

        Polars writes intervals as other types than Spark, and Spark rejects columns without a type.
        """
        is_plain = sink.options.get("format", "parquet") == "parquet" and not sink.options.get("partition_by")
        if any(re.search("NULL|INTERVAL", str(kind)) for kind in columns.values()):
            return False
        return is_plain and file_system_of(spark, sink.options["path"])[0].getScheme() == "file"

    def writer(self, rows: DataFrame) -> DataStreamWriter:
        """Return the writer of the stream of file names, ready to start."""
        log = _MetadataLog(rows.sparkSession, self._folder)
        for left in self._folder.glob(f"{_HIDDEN}*"):  # of batches that failed or were stopped
            left.unlink(missing_ok=True)

        def commit(batch: DataFrame, number: int) -> None:
            """Run a batch and list its files, unless a run before a crash has done so."""
            hidden = [self._folder / str(row[0]) for row in batch.where("rows IS NOT NULL").collect()]
            if log.has(number):
                for file in hidden:
                    file.unlink(missing_ok=True)
                return
            log.add(number, [file.rename(file.with_name(file.name.removeprefix("."))) for file in hidden])

        return rows.select(col("rows").cast("string")).writeStream.foreachBatch(commit)


class _MetadataLog:
    """Spark's list of the committed files of a folder; every batch is listed, even without files."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        jvm: Any = spark._jvm
        gateway: Any = spark._sc._gateway
        self._spark = spark
        self._sinks = jvm.org.apache.spark.sql.execution.streaming.sinks
        self._new_array = gateway.new_array
        format_version = self._sinks.FileStreamSinkLog.VERSION()
        metadata = f"file://{folder / METADATA}"
        retention = jvm.scala.Option.empty()
        self._log = self._sinks.FileStreamSinkLog(format_version, spark._jsparkSession, metadata, retention)

    def has(self, batch: int) -> bool:
        """Whether a batch is listed."""
        last = self._log.getLatestBatchId()
        return bool(last.isDefined() and batch <= last.get())

    def add(self, batch: int, paths: list[Path]) -> None:
        """List the files of a batch."""
        statuses = self._new_array(self._sinks.SinkFileStatus, len(paths))
        for n, path in enumerate(paths):
            files, hadoop_path = file_system_of(self._spark, f"file://{path}")
            statuses[n] = self._sinks.SinkFileStatus.apply(files.getFileStatus(hadoop_path))
        if not self._log.add(batch, statuses):
            raise JobFailed(f"batch {batch} is already in {METADATA}: another pipeline writes it")


def _write(folder: Path, rows: pl.DataFrame) -> Iterator[bytes]:
    """Write rows to a new hidden file, and yield its name. Raises WriteFailed."""
    path = folder / f"{_HIDDEN}{uuid4()}.snappy.parquet"
    columns = rows.select(pl.col("payload").struct.unnest())
    try:
        columns.write_parquet(path, compression="snappy", metadata=_FOOTER)
        path.chmod(0o644)  # as Spark's, although the pipeline's own files are private
    except (OSError, pl.exceptions.PolarsError) as error:
        path.unlink(missing_ok=True)
        reason = getattr(error, "strerror", None) or str(error)
        raise WriteFailed(f"{folder} cannot be written: {reason}; the job retries") from error
    yield path.name.encode()
