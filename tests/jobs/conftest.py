"""A broker and a pipeline for the tests of jobs."""

from collections.abc import Iterator

import pytest

from tests.conftest import StartBroker
from tests.jobs.system import Jobs


@pytest.fixture
def jobs(broker: StartBroker) -> Iterator[Jobs]:
    """Jobs on a broker of their own, with two buckets."""
    own = broker()
    found = Jobs(own.url, own.database_url)
    found.begin()
    yield found
    found.close()
