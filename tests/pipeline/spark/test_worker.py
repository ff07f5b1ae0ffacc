"""Spark's own work before and after a task of ours."""

import gc
import subprocess
import sys
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from queenspark.pipeline.spark.worker import prepare_worker

OBJECTS = 10_000  # far fewer than modules have, and far more than a task leaves


def test_a_worker_neither_visits_modules_nor_searches_jars(spark: SparkSession) -> None:
    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        list(batches)
        prepare_worker()
        jars = len([path for path in {*sys.path, *sys.path_importer_cache} if path.endswith(".jar")])
        found = {"jars": jars, "visited": len(gc.get_objects()), "kept": gc.get_freeze_count()}
        yield pa.record_batch({name: [value] for name, value in found.items()})

    schema = "jars long, visited long, kept long"
    (row,) = spark.range(1).repartition(1).mapInArrow(count, schema).collect()
    assert row.jars == 0
    assert row.visited < OBJECTS < row.kept


def test_objects_of_later_tasks_are_collected() -> None:
    program = """
import gc
from queenspark.pipeline.spark.worker import prepare_worker
counts, kept = [], []
for _ in range(20):
    prepare_worker()
    counts.append(gc.get_freeze_count())
    kept += [[] for _ in range(1000)]
print(counts[-1] - counts[9])
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert int(done.stdout) <= 0
