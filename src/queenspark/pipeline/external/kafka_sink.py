"""The Kafka sink of a job. The tasks that compute the rows write them to the topic."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from ...connectors.kafka.kafka_writer import KafkaRow, KafkaWriter
from ...store.definitions import Outside
from ..spark.worker import prepare_worker
from .packed_rows import Emit, packed_rows, unpacked_rows

_headers = msgspec.json.Decoder(dict[str, str]).decode


class KafkaSink:
    """Writes at least once: a batch that is replayed after a crash is written again."""

    def __init__(self, sink: Outside) -> None:
        self._options = sink.options
        self.emit: Emit = packed_rows

    def check(self, spark: SparkSession, checkpoint: str) -> None:
        """Do nothing: a topic accepts rows of any checkpoint."""

    def writer(self, rows: DataFrame) -> DataStreamWriter:
        """Return the stream writer, ready to start. Spark's own sink is a no-op."""
        written = rows.select("rows").mapInArrow(partial(_write, self._options), "written long")
        return written.writeStream.format("noop")


def _write(options: dict[str, str], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write packed rows, for `mapInArrow`; all are acknowledged before the batch ends. Raises WriteFailed."""
    prepare_worker()
    writer = KafkaWriter(options)
    for batch in batches:
        for rows in unpacked_rows(batch.column("rows")):
            columns = rows.select("transaction_id", "key", "payload", "headers").iter_rows()
            count = writer.write(
                KafkaRow(id_, key, value, _headers(headers)) for id_, key, value, headers in columns
            )
            yield pa.record_batch([pa.array([count], pa.int64())], names=["written"])
