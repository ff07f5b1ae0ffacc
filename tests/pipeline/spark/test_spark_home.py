"""The Spark home links to the installed Spark, without its zipped Python modules."""

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession

from queenspark.pipeline.spark.spark_home import linked_home

INSTALLED = Path(pyspark.__file__).parent


def test_python_workers_import_the_installed_pyspark(spark: SparkSession) -> None:
    def describe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyspark as found

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"file": [found.__file__]})

    row = spark.range(1, numPartitions=1).mapInArrow(describe, "file string").first()
    assert row is not None
    assert Path(row.file) == INSTALLED / "__init__.py"


def test_everything_but_the_zipped_modules_is_linked(tmp_path: Path) -> None:
    home = linked_home(tmp_path / "home", INSTALLED)
    names = {path.name for path in home.iterdir()}
    assert names == {path.name for path in INSTALLED.iterdir()} - {"python"}
    assert (home / "jars").resolve() == INSTALLED / "jars"


def test_each_installation_has_its_own_links(tmp_path: Path) -> None:
    found = []
    for name in ("former", "current"):
        (tmp_path / name / "jars").mkdir(parents=True)
        (tmp_path / name / "jars" / f"{name}.jar").touch()
        found.append(linked_home(tmp_path / "home", tmp_path / name))
    assert [path.name for home in found for path in (home / "jars").iterdir()] == [
        "former.jar",
        "current.jar",
    ]


def test_links_to_removed_folders_are_replaced(tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    (installed / "jars").mkdir(parents=True)
    home = linked_home(tmp_path / "home", installed)
    (home / "jars").unlink()
    (home / "jars").symlink_to(tmp_path / "gone")
    assert linked_home(tmp_path / "home", installed) == home
    assert (home / "jars").resolve() == installed / "jars"


def test_without_links_the_installed_spark_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        linked_home(tmp_path / "a:b", INSTALLED) == INSTALLED
    )  # Java's class path would be cut at the colon

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "symlink", refuse)
    assert linked_home(tmp_path / "home", INSTALLED) == INSTALLED
