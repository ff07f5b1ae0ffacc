"""`python -m bench.plain_files WORK DATA TO …`: a workload of `bench.files` in plain Spark; prints JSON.

In a process of its own, with Spark's default Java options; ours differ (see docs/performance.md). Of several
pairs of folders the last one counts; the others are the warm-up.
"""

import json
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from bench.files import WORKS, Plain
from bench.running import Run, watch
from queenspark.pipeline import start_session
from queenspark.settings import Settings


def plain_spark(spark: SparkSession, plain: Plain, folder: str, to: str) -> Run:
    """Measure plain Spark, one file per batch."""
    schema = "seq BIGINT, key STRING, at TIMESTAMP, value DOUBLE"
    records = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder)
    query = (
        plain(records).writeStream.format("parquet").option("path", to)
        .option("checkpointLocation", f"{to}-checkpoint").outputMode("append").trigger(availableNow=True)
        .start()
    )  # fmt: skip
    return watch(query, lambda: not query.isActive)


def main() -> None:
    """Measure, and print the last one."""
    plain = WORKS[int(sys.argv[1])].plain
    assert plain is not None
    with tempfile.TemporaryDirectory(prefix="queenspark-bench-") as folder:
        settings = Settings(data_dir=Path(folder), spark_driver_memory="3g")
        spark = start_session(settings, properties={"spark.driver.extraJavaOptions": ""})
        runs = [plain_spark(spark, plain, *pair) for pair in zip(sys.argv[2::2], sys.argv[3::2], strict=True)]
        spark.stop()
    print(json.dumps(runs[-1]._asdict()))


if __name__ == "__main__":
    main()
