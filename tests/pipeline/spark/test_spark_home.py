"""The Spark home links to the installed Spark, without its zipped Python modules."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyspark
from pyspark.sql import SparkSession

from queenspark.pipeline.spark.spark_home import link_home

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
    home = link_home(tmp_path / "home", INSTALLED)
    names = {path.name for path in home.iterdir()}
    assert names == {path.name for path in INSTALLED.iterdir()} - {"python"}
    assert (home / "jars").resolve() == INSTALLED / "jars"


def test_links_to_a_former_installation_are_replaced(tmp_path: Path) -> None:
    former, current, home = tmp_path / "former", tmp_path / "current", tmp_path / "home"
    for folder in (former, current):
        (folder / "jars").mkdir(parents=True)
        (folder / "jars" / f"{folder.name}.jar").touch()
        link_home(home, folder)
    assert [path.name for path in (home / "jars").iterdir()] == ["current.jar"]
