"""One Spark for all tests of the pipeline: a start takes longer than most tests."""

from base64 import b64encode
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from queenspark.pipeline import register, start_session
from queenspark.settings import Settings
from tests.pipeline.queues import KEY, Queues


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Spark on two cores, with the data source and an encryption key."""
    settings = Settings(spark_master="local[2]", data_dir=tmp_path_factory.mktemp("spark"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QUEENSPARK_ENCRYPTION_KEY", b64encode(KEY).decode())
        session = start_session(settings, name="tests")
        register(session)
        yield session
        session.stop()


@pytest.fixture
def queues(database: str) -> Queues:
    """Queues on a fresh database."""
    return Queues(database)
