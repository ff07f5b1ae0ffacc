"""`python -m bench.plain_spark URL QUEUE`: a hand-written Spark query drains a backlog, for comparison.

It counts messages by key and minute, with Spark's own windows and state, reading the same messages.
"""

import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.functions import window

from queenspark.pipeline import register, start_session
from queenspark.settings import Settings


def counted(spark: SparkSession, url: str, queue: str, folder: str) -> float:
    """Messages a second."""
    messages = spark.readStream.format("queen").option("url", url).option("queue", queue)
    windows = (
        messages.option("maxRowsPerTrigger", "800000")
        .load()
        .withWatermark("created_at", "0 seconds")
        .groupBy(window("created_at", "1 minute"), "partition")
        .count()
    )
    began = time.monotonic()
    query = (
        windows.writeStream.format("noop")
        .outputMode("append")
        .option("checkpointLocation", folder)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    read = sum(progress["numInputRows"] for progress in query.recentProgress)
    return float(read / (time.monotonic() - began))


def main() -> None:
    """Measure twice, the first time to warm up."""
    with tempfile.TemporaryDirectory(prefix="queenspark-bench-") as folder:
        spark = start_session(Settings(data_dir=Path(folder)))
        register(spark)
        rates = [counted(spark, sys.argv[1], sys.argv[2], f"{folder}/{number}") for number in range(2)]
        spark.stop()
        print(rates[-1])


if __name__ == "__main__":
    main()
