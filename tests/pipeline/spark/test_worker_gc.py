"""Spark collects garbage after every task; our modules do not take part."""

import gc
import subprocess
import sys
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from queenspark.pipeline.spark.worker_gc import exclude_modules_from_gc

OBJECTS = 10_000  # far fewer than modules have, and far more than a task leaves


def test_objects_of_modules_are_not_visited_after_a_task(spark: SparkSession) -> None:
    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        list(batches)
        exclude_modules_from_gc()
        found = [len(gc.get_objects()), gc.get_freeze_count()]
        yield pa.record_batch([[each] for each in found], names=["visited", "excluded"])

    (row,) = spark.range(1).repartition(1).mapInArrow(count, "visited long, excluded long").collect()
    assert row.visited < OBJECTS < row.excluded


def test_objects_of_later_tasks_are_collected() -> None:
    program = """
import gc
from queenspark.pipeline.spark.worker_gc import exclude_modules_from_gc
counts, kept = [], []
for _ in range(20):
    exclude_modules_from_gc()
    counts.append(gc.get_freeze_count())
    kept += [[] for _ in range(1000)]
print(counts[-1] - counts[9])
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert int(done.stdout) <= 0
