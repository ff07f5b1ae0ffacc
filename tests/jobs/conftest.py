"""A broker and a pipeline for the tests of jobs, and Spark as their judge."""

from collections.abc import Iterator

import pytest

from tests.conftest import StartBroker
from tests.jobs.system import Jobs
from tests.sql.judge import Judge


@pytest.fixture(scope="module")
def module_jobs(module_broker: StartBroker) -> Iterator[Jobs]:
    """A broker and a pipeline with two buckets, for all tests of a file."""
    own = module_broker()
    found = Jobs(own.url, own.database_url)
    yield found
    found.close()


@pytest.fixture
def jobs(module_jobs: Jobs) -> Jobs:
    """The same, with names that no other test has used."""
    module_jobs.begin()
    return module_jobs


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    """Spark in ANSI mode and UTC."""
    spark = Judge(tmp_path_factory.mktemp("judge"))
    yield spark
    spark.stop()
