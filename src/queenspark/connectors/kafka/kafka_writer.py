"""Writes rows to a Kafka topic: at least once, and exactly once as long as nothing restarts.

The producer is idempotent: its own retries cause no duplicates and keep the order within a partition. A batch
that Spark replays after a crash is written again; readers can deduplicate by the row's id in the header
`queenspark-id`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from time import monotonic
from typing import NamedTuple

import msgspec
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from ..errors import WriteFailed
from .kafka_options import Faults, KafkaOptions, opened, said

ID_HEADER = "queenspark-id"
PATIENCE_SECONDS = 120.0
"""Time without an acknowledgement after which a batch fails."""


class KafkaRow(NamedTuple):
    """A row as a record: rows with the same key go to the same partition."""

    id: str
    key: str | None
    value: str | None
    headers: Mapping[str, str] = {}


class KafkaWriter:
    """Writes to one topic."""

    def __init__(self, options: dict[str, str]) -> None:
        chosen = KafkaOptions.of(options)
        self._topic = chosen.topic
        self._options = msgspec.json.encode(chosen, order="sorted")

    def write(self, rows: Iterable[KafkaRow]) -> int:
        """Write rows and wait until all are acknowledged; return their number. Raises WriteFailed."""
        client = _client(self._options)
        batch = _Batch(client, self._topic)
        is_written = False
        try:
            for row in rows:
                batch.add(row)
            batch.wait()
            is_written = True
        except KafkaException as error:
            reason: KafkaError = error.args[0]
            raise WriteFailed(
                f"writing to the topic {self._topic} failed: {said(reason)}; the batch is retried"
            ) from None
        finally:
            if not is_written:
                _forget(client.producer)
        return batch.count


class _Batch:
    """A batch of rows in flight. Raises KafkaException with the first error of any row."""

    def __init__(self, client: _Client, topic: str) -> None:
        self._client = client
        self._topic = topic
        self._deadline = monotonic() + PATIENCE_SECONDS
        self._errors: list[KafkaError] = []
        self.count = 0

    def add(self, row: KafkaRow) -> None:
        """Enqueue a row; it is acknowledged later."""
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
        self._deadline = monotonic() + PATIENCE_SECONDS


class _Client:
    """A producer that lives as long as the process, because Spark reuses workers."""

    def __init__(self, options: KafkaOptions) -> None:
        self.faults = Faults()
        self.producer: Producer = opened(Producer, options.producer(error_cb=self.faults))


@lru_cache(maxsize=8)
def _client(options: bytes) -> _Client:
    return _Client(msgspec.json.decode(options, type=KafkaOptions))


def _forget(producer: Producer) -> None:
    """Discard the rest of a failed batch, so that it cannot be written during or after the retry.

    The producer is replaced: after a fatal error it would reject every row.
    """
    _client.cache_clear()
    with suppress(KafkaException):
        producer.purge()
        producer.flush(5)


def write_rows(
    options: dict[str, str], rows: Iterable[tuple[str, str | None, str | None, Mapping[str, str]]]
) -> None:
    """Write rows in a Spark task: `frame.foreachPartition(partial(write_rows, options))`.

    Each row is (id, key, value, headers).
    """
    KafkaWriter(options).write(KafkaRow(*row) for row in rows)
