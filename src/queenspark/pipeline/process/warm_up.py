"""A warm-up query of a standby, so that its first batch as leader is not the first of its JVM.

It takes the path of the streams query, from a source in Python through a state store, with almost no data:
code is compiled, libraries are loaded and processes are running before they are needed.
"""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues
from pyspark.sql.types import StructType

from ...windows import State
from ..streams.bucket_rows import BucketSource, one_row
from ..streams.bucket_state import BucketState
from ..streams.job_stage import RECORD
from ..streams.parcels import Parcels, unpack
from ..streams.streams_query import bucket_labels
from ..streams.window_processor import OUTPUT

log = logging.getLogger("queenspark.pipeline")

NAME = "queenspark-warm-up"
BATCHES = 5
_WAIT_SECONDS = 1.0
_TROUBLE = (Py4JError, PySparkException, OSError)  # a standby works without a warm-up


class WarmUp:
    """The query: started, checked from time to time, and stopped when done or in the way."""

    def __init__(self, spark: SparkSession) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="queenspark-warm-up-", ignore_cleanup_errors=True)
        self._query: StreamingQuery | None = None
        with suppress(*_TROUBLE):
            self._query = _start(spark, self._folder.name)

    def check(self) -> None:
        """Stop it once it has run its batches."""
        with suppress(*_TROUBLE):
            progress = self._query.lastProgress if self._query is not None else None
            if progress is not None and progress["batchId"] >= BATCHES - 1:
                self.stop()
                log.info("warmed up, ready to take over")

    def stop(self) -> None:
        """Stop it now."""
        query, self._query = self._query, None
        if query is not None:
            with suppress(*_TROUBLE):
                query.stop()
            self._folder.cleanup()


def _start(spark: SparkSession, checkpoint: str) -> StreamingQuery:
    spark.dataSource.register(WarmUpSource)
    buckets = ",".join(map(str, bucket_labels(spark)))
    source = spark.readStream.format(NAME).option("buckets", buckets).load()
    rows = source.groupBy("bucket").transformWithStateInPandas(WarmUpProcessor(), OUTPUT, "append", "none")
    to = rows.writeStream.format("noop").option("checkpointLocation", checkpoint).outputMode("append")
    return to.start()


class WarmUpSource(BucketSource):
    """A few batches with one row per bucket."""

    format = NAME

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """The reader."""
        return WarmUpReader([int(bucket) for bucket in self.options["buckets"].split(",")])


class WarmUpReader(DataSourceStreamReader):
    """The reader of the warm-up batches."""

    def __init__(self, buckets: list[int]) -> None:
        self._buckets = buckets

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """The offset before the first batch."""
        return {"n": 0}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """The next offset, while there is one."""
        if start["n"] >= BATCHES:
            time.sleep(_WAIT_SECONDS)
            return start
        return {"n": start["n"] + 1}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """A single partition."""
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """One row per bucket, with one record."""
        buckets = pl.Series("bucket", self._buckets, dtype=pl.Int32)
        parcels = Parcels(buckets)
        columns = {name: pl.Series([0] * len(self._buckets)).cast(kind) for name, kind in RECORD.items()}
        parcels.add_records(pl.DataFrame(columns), pl.Series(range(len(self._buckets)), dtype=pl.UInt64))
        for bucket, packed in parcels.packed():
            yield one_row(bucket, "", packed)


class WarmUpProcessor(StatefulProcessor):
    """Stores its input."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Use the same kind of state as the streams query."""
        self._state = BucketState(handle)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Read and write the state."""
        packed = [bytes(records) for frame in rows for records in frame["records"] if records is not None]
        bucket = int(key[0])
        before = self._state.load(bucket)
        self._state.save(bucket, before, State({"": {"rows": pl.DataFrame({"n": [time.time_ns()]})}}), {})
        zeros = {
            "records": [sum(frame.height for frame in unpack(packed).records)],
            "windows": [0],
            "open_windows": [0],
            "state_bytes": [0],
            "seconds": [0.0],
        }
        yield pd.DataFrame({"bucket": [bucket], **zeros})

    def close(self) -> None:
        """Nothing to close."""
