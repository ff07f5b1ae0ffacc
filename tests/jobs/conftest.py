"""A broker and a pipeline for the tests of jobs, and Spark as their judge."""

from collections.abc import Iterator

import pytest

from tests.conftest import StartBroker
from tests.jobs.system import Jobs
from tests.sql.judge import Judge


@pytest.fixture
def jobs(broker: StartBroker) -> Iterator[Jobs]:
    """Jobs on a broker of their own, with two buckets."""
    own = broker()
    found = Jobs(own.url, own.database_url)
    found.begin()
    yield found
    found.close()


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    """Spark in ANSI mode and UTC."""
    spark = Judge(tmp_path_factory.mktemp("judge"))
    yield spark
    spark.stop()
