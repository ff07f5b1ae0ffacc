"""Topics of Kafka, statements over them, and the queries of jobs, as Python calls."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from queenspark.store.pipeline import PipelineStore
from tests.jobs.system import Jobs
from tests.kafka.broker import Kafka
from tests.pipeline.streams.local import LocalJob

DAY = 1_769_860_800_000
"""2026-01-31T12:00:00Z in milliseconds."""
_QUIET: dict[str, Any] = {"log_level": 0}


class Record(NamedTuple):
    """A message to be produced."""

    value: Any
    partition: int = 0
    at: int = DAY
    key: str | None = None
    headers: Mapping[str, bytes] = {}

    @property
    def data(self) -> bytes | None:
        """Its value as bytes; objects are written as JSON."""
        if self.value is None or isinstance(self.value, bytes):
            return self.value
        return self.value.encode() if isinstance(self.value, str) else json.dumps(self.value).encode()


class Topics(Jobs):
    """One cluster and one broker of ours; each job is run in this process by its own query."""

    kafka: Kafka

    def create(self, topic: str = "t", partitions: int = 1, config: dict[str, str] | None = None) -> str:
        """Create a topic; its name has the tag of the test."""
        name = self.name(topic)
        client = AdminClient({"bootstrap.servers": self.kafka.brokers, **_QUIET})
        if self.kafka.is_real:
            client.create_topics([NewTopic(name, partitions, 1, config=config or {})])[name].result(20)
        wait_until(lambda: len(client.list_topics(name, timeout=5).topics[name].partitions) >= partitions)
        return name

    def produce(self, topic: str, records: Sequence[Record]) -> None:
        """Produce records; each partition has them in this order."""
        producer = Producer({"bootstrap.servers": self.kafka.brokers, "enable.idempotence": True, **_QUIET})
        produce(producer, self.name(topic), records)
        assert producer.flush(30) == 0

    def transactional(self, topic: str) -> "Transactions":
        """A producer with transactions."""
        return Transactions(self.kafka.brokers, self.name(topic))

    def consume(self, topic: str) -> list[Message]:
        """All messages of a topic that can be read."""
        return consume(self.kafka.brokers, self.name(topic))

    def source(self, columns: str = "", topic: str = "t", name: str = "s", **options: str) -> str:
        """CREATE SOURCE over a topic."""
        given = {"connector": "kafka", "brokers": self.kafka.brokers, "topic": self.name(topic), **options}
        listed = ", ".join(f"{key.replace('__', '.')} = '{value}'" for key, value in given.items())
        return f"create source {{{name}}} {f'({columns})' if columns else ''} with ({listed});"

    def query(self, name: str, **limits: int) -> LocalJob:
        """The query of a job."""
        with PipelineStore(self.database_url) as store:
            ids = {row.body.name: row for row in store.wanted_jobs()}
        return LocalJob(self.database_url, ids[self.name(name)], **{"max_bytes": 10_000_000, **limits})

    def run_job(self, name: str, **limits: int) -> int:
        """Run a job until there is nothing to do; return the number of batches."""
        query = self.query(name, **limits)
        count = query.drain()
        query.close()
        return count


class Transactions:
    """A producer whose records are committed or aborted together."""

    def __init__(self, brokers: str, topic: str) -> None:
        self._topic = topic
        self._producer = Producer({"bootstrap.servers": brokers, "transactional.id": topic, **_QUIET})
        self._producer.init_transactions(30)

    def begin(self, records: Sequence[Record]) -> None:
        """Write records that are not yet visible."""
        self._producer.begin_transaction()
        produce(self._producer, self._topic, records)
        self._producer.flush(30)

    def commit(self) -> None:
        """Make them visible."""
        self._producer.commit_transaction(30)

    def abort(self) -> None:
        """Discard them."""
        self._producer.abort_transaction(30)


def produce(producer: Producer, topic: str, records: Sequence[Record]) -> None:
    for each in records:
        while True:
            try:
                producer.produce(
                    topic, each.data, key=each.key, partition=each.partition, timestamp=each.at,
                    headers=list(each.headers.items()),
                )  # fmt: skip
                break
            except BufferError:
                producer.poll(0.1)


def consume(brokers: str, topic: str) -> list[Message]:
    """All messages of a topic that can be read."""
    consumer = Consumer(
        {"bootstrap.servers": brokers, "group.id": "tests", "enable.auto.commit": False,
         "enable.partition.eof": True, **_QUIET}
    )  # fmt: skip
    partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
    found: list[Message] = []
    waiting = len(partitions)
    while waiting:
        message = consumer.poll(10)
        assert message is not None, "no response"
        if message.error() is None:
            found.append(message)
        else:
            waiting -= 1
    consumer.close()
    return found


def wait_until(is_so: Callable[[], bool], within: float = 30) -> None:
    """Wait for a state of the cluster."""
    deadline = time.monotonic() + within
    while True:
        try:
            if is_so():
                return
        except KafkaException:
            pass
        assert time.monotonic() < deadline
        time.sleep(0.05)
