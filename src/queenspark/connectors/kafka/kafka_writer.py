"""Writes rows to a topic of Kafka: each at least once, and each once while nothing is restarted.

The producer is idempotent, so its own retries write nothing twice and keep the order within a partition. A
batch that Spark runs again after a crash is written again: the header `queenspark-id` has the row's id, by
which readers can leave out rows that they know.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from time import monotonic
from typing import NamedTuple

import msgspec
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from .kafka_options import Faults, KafkaOptions, opened

ID_HEADER = "queenspark-id"
PATIENCE_SECONDS = 120.0
"""How long a batch may take before it counts as failed."""


class KafkaRow(NamedTuple):
    """A row as a record: rows with the same key go to the same partition."""

    id: str
    key: str | None
    value: str | None
    headers: Mapping[str, str] = {}


class WriteFailed(Exception):
    """Rows could not be written: the problem, then the fix. None, some or all of them are in the topic."""


class KafkaWriter:
    """Writes to one topic."""

    def __init__(self, options: dict[str, str]) -> None:
        chosen = KafkaOptions.of(options)
        self._topic = chosen.topic
        self._options = msgspec.json.encode(chosen, order="sorted")

    def write(self, rows: Iterable[KafkaRow]) -> int:
        """Write rows; return when all are acknowledged how many they were. Raises WriteFailed."""
        client = _client(self._options)
        batch = _Batch(client, self._topic)
        try:
            for row in rows:
                batch.add(row)
            batch.wait()
        except KafkaException as error:
            reason: KafkaError = error.args[0]
            raise WriteFailed(
                f"rows cannot be written to the topic {self._topic}: {reason.str()}; they are tried again"
            ) from None
        finally:
            if len(client.producer):
                _forget(client.producer)
        return batch.count


class _Batch:
    """Rows that are written together. Raises KafkaException with the first error of any of them."""

    def __init__(self, client: _Client, topic: str) -> None:
        self._client = client
        self._topic = topic
        self._deadline = monotonic() + PATIENCE_SECONDS
        self._errors: list[KafkaError] = []
        self.count = 0

    def add(self, row: KafkaRow) -> None:
        """Write a row; it is acknowledged later."""
        headers = [(name, value.encode()) for name, value in row.headers.items()]
        while True:
            try:
                self._client.producer.produce(
                    self._topic,
                    value=None if row.value is None else row.value.encode(),
                    key=None if row.key is None else row.key.encode(),
                    headers=[*headers, (ID_HEADER, row.id.encode())],
                    on_delivery=self._delivered,
                )
                self.count += 1
                self._check(0)
                return
            except BufferError:  # the queue of librdkafka is full
                self._check(0.1)

    def wait(self) -> None:
        """Wait until all are acknowledged."""
        while len(self._client.producer):
            self._check(0.1)
        self._check(0)

    def _check(self, seconds: float) -> None:
        self._client.producer.poll(seconds)
        if not self._errors and monotonic() > self._deadline:
            self._errors.append(self._client.faults.reason(KafkaError(KafkaError._TIMED_OUT)))
        if self._errors:
            raise KafkaException(self._errors[0])

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._errors.append(error)


class _Client:
    """A producer that lives as long as the process: Spark's workers do many tasks."""

    def __init__(self, options: KafkaOptions) -> None:
        self.faults = Faults()
        defaults = {"linger.ms": 20, "compression.type": "lz4", **options.settings}
        self.producer: Producer = opened(
            Producer,
            {
                **defaults,
                **options.client(**{"enable.idempotence": True, "acks": "all", "error_cb": self.faults}),
            },
        )


@lru_cache(maxsize=8)
def _client(options: bytes) -> _Client:
    return _Client(msgspec.json.decode(options, type=KafkaOptions))


def _forget(producer: Producer) -> None:
    """Let nothing of a failed batch be written later, behind the back of its next try."""
    producer.purge()
    producer.flush(5)
    _client.cache_clear()


def write_rows(
    options: dict[str, str], rows: Iterable[tuple[str, str | None, str | None, Mapping[str, str]]]
) -> None:
    """Write rows in a task of Spark: `frame.foreachPartition(partial(write_rows, options))`.

    The rows have id, key, value and headers, in this order.
    """
    KafkaWriter(options).write(KafkaRow(*row) for row in rows)
