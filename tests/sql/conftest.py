"""One Spark for the tests that it judges."""

from collections.abc import Iterator

import pytest

from tests.sql.judge import Judge


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    """Spark in ANSI mode and UTC."""
    spark = Judge(tmp_path_factory.mktemp("judge"))
    yield spark
    spark.stop()
