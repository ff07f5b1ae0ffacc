"""The query that serves all streams."""

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

from ...settings import EncryptionKeys, Settings, decode_key
from ...store.definitions import STREAMS_QUERY
from ...store.pipeline import PipelineStore
from ..histogram import Histogram
from ..spark.secrets import Secrets, seal
from .care import Coroner
from .rates import StreamRates
from .stream_source import NAME, StreamsDataSource, StreamsOptions
from .window_processor import OUTPUT, WindowProcessor

log = logging.getLogger("queenspark.pipeline")

_SUMS = ("records", "windows", "open_windows", "state_bytes")


class StreamsQuery:
    """Computes the windows of all streams and pushes them to the window queues."""

    name = STREAMS_QUERY
    seq = 0

    def __init__(
        self, url: str, *, checkpoint: str, max_rows: int, encryption_key: EncryptionKeys | None = None
    ) -> None:
        self._secrets = Secrets(url, encryption_key)
        self._checkpoint = checkpoint
        self._max_rows = max_rows
        self._store = PipelineStore(url)
        self._rates = StreamRates(self._store)
        self._coroner = Coroner(self._store)
        self._started: StreamingQuery | None = None
        self._last = dict.fromkeys(_SUMS, 0)
        self._bucket_times: defaultdict[int, Histogram] = defaultdict(Histogram)

    @classmethod
    def of(cls, settings: Settings, url: str) -> StreamsQuery:
        """Build the query from the settings."""
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
        failure = self._started.exception() if self._started is not None else None
        care = self._coroner.care(None if failure is None else str(failure))
        reference = seal(self._secrets)
        options = StreamsOptions(reference, buckets, self._max_rows, care)
        source = spark.readStream.format(NAME).option("options", msgspec.json.encode(options).decode()).load()
        windows = source.groupBy("bucket").transformWithStateInPandas(
            WindowProcessor(reference, epoch, buckets, care), OUTPUT, "append", "none"
        )
        sums = [sum_(name).alias(name) for name in _SUMS]
        times = [
            max_(when(col("bucket") == bucket, col("seconds"))).alias(_time_of(number))
            for number, bucket in enumerate(buckets)
        ]
        self._started = (
            windows.observe("batch", *sums, *times)
            .writeStream.format("noop")
            .queryName(self.name)
            .option("checkpointLocation", self._checkpoint)
            .outputMode("append")
            .start()
        )
        return self._started

    def report(self, batches: Sequence[StreamingQueryProgress]) -> dict[str, Any]:
        """Report the last batch, and rates over the last minute; late records are logged."""
        measured = self._rates.measure()
        for stream in measured.late:
            log.warning(
                "stream %s in %s: %d late records, after their windows were sealed",
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
        """Collect the sums over the buckets, and the duration of each."""
        found = (batch["observedMetrics"] or {}).get("batch")
        if found is None:
            return
        observed = found.asDict()
        self._last = {name: int(observed[name] or 0) for name in _SUMS}
        for number in range(len(observed) - len(_SUMS)):
            if (seconds := observed[_time_of(number)]) is not None:
                self._bucket_times[number].observe(seconds)

    def failed(self, reason: str) -> None:
        """Do nothing: the report includes the failure."""

    def close(self) -> None:
        """Disconnect."""
        self._store.close()


def _time_of(bucket: int) -> str:
    """The name of Spark's metric for the duration of a bucket."""
    return f"seconds_{bucket}"


def bucket_labels(spark: SparkSession) -> tuple[int, ...]:
    """Return a label for each bucket, chosen so that Spark runs each in its own task."""
    count = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    parts: dict[int, int] = {}
    frame = spark.range(64 * count).selectExpr("cast(id as int) as label")
    for label, part in frame.select("label", pmod(spark_hash("label"), lit(count))).collect():
        parts.setdefault(int(part), int(label))
    return tuple(label for _, label in sorted(parts.items()))
