"""A broker and a pipeline for the tests of jobs."""

from collections.abc import Iterator

import pytest

from tests.conftest import StartBroker
from tests.jobs.system import Jobs


@pytest.fixture(scope="module")
def module_jobs(module_broker: StartBroker) -> Iterator[Jobs]:
    """A broker and a pipeline with two buckets, for all tests of a file."""
    own = module_broker()
    found = Jobs(own.url, own.database_url)
    yield found
    found.close()


@pytest.fixture
def jobs(module_jobs: Jobs) -> Iterator[Jobs]:
    """The same, with names that no other test has used."""
    module_jobs.begin()
    yield module_jobs
    module_jobs.forget()
