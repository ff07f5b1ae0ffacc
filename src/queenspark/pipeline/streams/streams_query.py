"""The one query that serves all streams."""

from __future__ import annotations

import msgspec
from pyspark.sql import SparkSession
from pyspark.sql.functions import hash as spark_hash
from pyspark.sql.functions import lit, pmod
from pyspark.sql.functions import sum as sum_
from pyspark.sql.streaming.query import StreamingQuery

from .stream_source import NAME, StreamsDataSource, StreamsOptions
from .window_processor import OUTPUT, WindowProcessor


def start_streams(
    spark: SparkSession,
    url: str,
    *,
    epoch: int,
    checkpoint: str,
    max_rows: int,
    encryption_key: bytes | None = None,
) -> StreamingQuery:
    """Start the query; it runs until it is stopped or fails."""
    spark.dataSource.register(StreamsDataSource)
    buckets = bucket_labels(spark)
    options = StreamsOptions(url, buckets, max_rows, encryption_key)
    source = spark.readStream.format(NAME).option("options", msgspec.json.encode(options).decode()).load()
    windows = source.groupBy("bucket").transformWithStateInPandas(
        WindowProcessor(url, epoch, buckets), OUTPUT, "append", "none"
    )
    sums = [sum_(name).alias(name) for name in ("records", "windows", "open_windows", "state_bytes")]
    return (
        windows.observe("batch", *sums)
        .writeStream.format("noop")
        .queryName("streams")
        .option("checkpointLocation", checkpoint)
        .outputMode("append")
        .start()
    )


def bucket_labels(spark: SparkSession) -> tuple[int, ...]:
    """A number for each bucket, such that Spark gives every bucket a task of its own."""
    count = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    parts: dict[int, int] = {}
    frame = spark.range(64 * count).selectExpr("cast(id as int) as label")
    for label, part in frame.select("label", pmod(spark_hash("label"), lit(count))).collect():
        parts.setdefault(int(part), int(label))
    return tuple(label for _, label in sorted(parts.items()))
