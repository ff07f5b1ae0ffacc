"""A sink of Parquet files in a local folder, written by the tasks that compute the rows.

Spark's own writer receives one row at a time from Python, which takes as long as computing it. Here, Polars
writes whole columns, and Spark only lists the files of each batch in its metadata log, as its own file sink
does. Either sink can therefore continue the other's folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import polars as pl
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from ...connectors.errors import WriteFailed
from ...connectors.files.sink_check import METADATA
from ...sql.types import SqlType
from ...store.definitions import Outside
from .files_sink import FilesSink, file_system_of
from .packed_rows import Emit


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

        def commit(batch: DataFrame, number: int) -> None:
            """Run a batch and list its files, unless a run before a crash has done so."""
            names = [bytes(row[0]).decode() for row in batch.where("rows IS NOT NULL").collect()]
            if not log.add(number, names):
                for name in names:
                    (self._folder / name).unlink(missing_ok=True)

        return rows.select("rows").writeStream.foreachBatch(commit)


class _MetadataLog:
    """Spark's list of the committed files of a folder; every batch is listed, even without files."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        jvm: Any = spark._jvm
        gateway: Any = spark._sc._gateway
        self._sinks = jvm.org.apache.spark.sql.execution.streaming.sinks
        self._new_array = gateway.new_array
        self._spark = spark
        self._url = f"file://{folder}"
        version, metadata = self._sinks.FileStreamSinkLog.VERSION(), f"{self._url}/{METADATA}"
        retention = jvm.scala.Option.empty()
        self._log = self._sinks.FileStreamSinkLog(version, spark._jsparkSession, metadata, retention)

    def add(self, batch: int, names: list[str]) -> bool:
        """List the files of a batch; return False if it is already listed."""
        last = self._log.getLatestBatchId()
        if last.isDefined() and batch <= last.get():
            return False
        statuses = self._new_array(self._sinks.SinkFileStatus, len(names))
        for n, name in enumerate(names):
            files, path = file_system_of(self._spark, f"{self._url}/{name}")
            statuses[n] = self._sinks.SinkFileStatus.apply(files.getFileStatus(path))
        return bool(self._log.add(batch, statuses))


def _write(folder: Path, rows: pl.DataFrame) -> Iterator[bytes]:
    """Write rows to a new file, complete as soon as it has its name, and yield that. Raises WriteFailed."""
    name = f"part-{uuid4()}.snappy.parquet"
    part = folder / f".{name}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        rows.select(pl.col("payload").struct.unnest()).write_parquet(part, compression="snappy")
        part.rename(folder / name)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise WriteFailed(f"{folder}: {error.strerror or error}; the job retries") from error
    yield name.encode()
