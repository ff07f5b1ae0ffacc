"""A Kafka broker, or a mock of it, and a broker of ours for jobs over its topics."""

from collections.abc import Iterator

import pytest

from queenspark.pipeline.external import job_source
from tests.conftest import StartBroker
from tests.kafka.broker import Kafka, KafkaBroker, MockCluster, is_fetched
from tests.kafka.topics import Topics


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """A broker that `make kafka` has fetched, else librdkafka's mock cluster."""
    if not is_fetched():
        yield MockCluster()
        return
    broker = KafkaBroker(tmp_path_factory.mktemp("kafka"))
    broker.start()
    yield broker
    broker.stop()


@pytest.fixture(scope="module")
def module_topics(module_broker: StartBroker, kafka: Kafka) -> Iterator[Topics]:
    """A broker of ours for all tests of a file."""
    job_source.WAIT_SECONDS = 0.02
    own = module_broker(external_jobs=1000)
    found = Topics(own.url, own.database_url)
    found.kafka = kafka
    yield found
    found.close()


@pytest.fixture
def topics(module_topics: Topics) -> Topics:
    """The same, with names that no other test has used."""
    module_topics.begin()
    return module_topics


@pytest.fixture
def real_topics(topics: Topics) -> Topics:
    """The same, for tests that need more than the mock cluster can do."""
    if not topics.kafka.is_real:
        pytest.skip("needs a Kafka broker: fetch one with make kafka")
    return topics
