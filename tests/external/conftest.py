"""A broker for jobs over files, whose queries run in this process."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from queenspark.connectors.files import files_reader
from queenspark.pipeline.external import job_source
from queenspark.windows import merging
from tests.conftest import StartBroker
from tests.external.files import Files


@pytest.fixture(scope="module")
def module_files(module_broker: StartBroker) -> Iterator[Files]:
    """A broker for all tests of a file."""
    job_source.WAIT_SECONDS = 0.02
    merging.FEWEST = 2
    files_reader.LIST_SECONDS = 0.0
    own = module_broker(external_jobs=100)
    found = Files(own.url, own.database_url)
    yield found
    found.close()


@pytest.fixture
def files(module_files: Files, tmp_path: Path) -> Files:
    """The same, with names and a folder that no other test has used."""
    module_files.begin()
    module_files.folder = tmp_path
    return module_files
