"""The one query that serves all streams."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, lit, pmod, when
from pyspark.sql.functions import hash as spark_hash
from pyspark.sql.functions import max as max_
from pyspark.sql.functions import sum as sum_
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from ...settings import Settings, decode_key
from ...store.definitions import STREAMS_QUERY
from ...store.pipeline import PipelineStore
from ..histogram import Histogram
from .rates import StreamRates
from .stream_source import NAME, StreamsDataSource, StreamsOptions
from .window_processor import OUTPUT, WindowProcessor

log = logging.getLogger("queenspark.pipeline")

_SUMS = ("records", "windows", "open_windows", "state_bytes")


class StreamsQuery:
    """Cuts the messages of all streams into windows and pushes these into the window queues."""

    name = STREAMS_QUERY
    seq = 0

    def __init__(
        self, url: str, *, checkpoint: str, max_rows: int, encryption_key: bytes | None = None
    ) -> None:
        self._url = url
        self._checkpoint = checkpoint
        self._max_rows = max_rows
        self._encryption_key = encryption_key
        self._store = PipelineStore(url)
        self._rates = StreamRates(self._store)
        self._last = dict.fromkeys(_SUMS, 0)
        self._bucket_times: defaultdict[int, Histogram] = defaultdict(Histogram)

    @classmethod
    def of(cls, settings: Settings, url: str) -> StreamsQuery:
        """The query as the settings want it."""
        key = settings.encryption_key
        return cls(
            url,
            checkpoint=settings.spark_checkpoint
            or str(settings.data_dir.absolute() / "checkpoint" / "streams"),
            max_rows=settings.spark_max_rows,
            encryption_key=decode_key(key) if key else None,
        )

    def start(self, spark: SparkSession, epoch: int) -> StreamingQuery:
        """Start the query; it runs until it is stopped or fails."""
        spark.dataSource.register(StreamsDataSource)
        buckets = bucket_labels(spark)
        options = StreamsOptions(self._url, buckets, self._max_rows, self._encryption_key)
        source = spark.readStream.format(NAME).option("options", msgspec.json.encode(options).decode()).load()
        windows = source.groupBy("bucket").transformWithStateInPandas(
            WindowProcessor(self._url, epoch, buckets), OUTPUT, "append", "none"
        )
        sums = [sum_(name).alias(name) for name in _SUMS]
        times = [
            max_(when(col("bucket") == bucket, col("seconds"))).alias(_time_of(number))
            for number, bucket in enumerate(buckets)
        ]
        return (
            windows.observe("batch", *sums, *times)
            .writeStream.format("noop")
            .queryName(self.name)
            .option("checkpointLocation", self._checkpoint)
            .outputMode("append")
            .start()
        )

    def report(self, batches: Sequence[StreamingQueryProgress]) -> dict[str, Any]:
        """What the last batch did, and rates over the last minute; late records go to the log."""
        measured = self._rates.measure()
        for stream in measured.late:
            log.warning(
                "stream %s in %s: %d late records, whose windows were sealed already",
                stream.name, stream.namespace, stream.records,
            )  # fmt: skip
        for batch in batches:
            self._observe(batch)
        return {
            "records": self._last["records"],
            "windows": self._last["windows"],
            "openWindows": self._last["open_windows"],
            "stateBytes": self._last["state_bytes"],
            "inputRowsPerSecond": measured.pipeline.arriving,
            "processedRowsPerSecond": measured.pipeline.processed,
            "sealedWindowsPerSecond": measured.pipeline.sealed,
            "lateRecordsPerSecond": measured.pipeline.late,
            "backpressure": measured.pipeline.backpressure,
            "buckets": {
                str(bucket): {
                    "processedRowsPerSecond": rates.processed,
                    "sealedWindowsPerSecond": rates.sealed,
                    "lateRecordsPerSecond": rates.late,
                    "batchSecondsHistogram": self._bucket_times[bucket].to_json(),
                }
                for bucket, rates in sorted(measured.buckets.items())
            },
        }

    def _observe(self, batch: StreamingQueryProgress) -> None:
        """Take the sums over the buckets, and how long each of them took."""
        found = (batch["observedMetrics"] or {}).get("batch")
        if found is None:
            return
        observed = found.asDict()
        self._last = {name: int(observed[name] or 0) for name in _SUMS}
        for number in range(len(observed) - len(_SUMS)):
            if (seconds := observed[_time_of(number)]) is not None:
                self._bucket_times[number].observe(seconds)

    def failed(self, reason: str) -> None:
        """The report says it."""

    def close(self) -> None:
        """Disconnect."""
        self._store.close()


def _time_of(bucket: int) -> str:
    """The name under which Spark observes how long a bucket took."""
    return f"seconds_{bucket}"


def bucket_labels(spark: SparkSession) -> tuple[int, ...]:
    """A number for each bucket, such that Spark gives every bucket a task of its own."""
    count = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    parts: dict[int, int] = {}
    frame = spark.range(64 * count).selectExpr("cast(id as int) as label")
    for label, part in frame.select("label", pmod(spark_hash("label"), lit(count))).collect():
        parts.setdefault(int(part), int(label))
    return tuple(label for _, label in sorted(parts.items()))
