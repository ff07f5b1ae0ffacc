"""Topic metadata for the driver: partitions, and offsets by time. Nothing is consumed here."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from ..reader import ReadFailed
from .kafka_options import Faults, KafkaOptions, opened, said
from .kafka_position import MOST_PARTITIONS

METADATA_SECONDS = 10.0
"""Interval between checks for new partitions."""
TIMEOUT_SECONDS = 5.0
_ID_SECONDS = 2.0
_GONE = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN_TOPIC_ID)
_REFUSED = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError.TOPIC_EXCEPTION,
}  # fmt: skip


class Unavailable(Exception):
    """The brokers do not respond; retrying may help."""


class Topic:
    """Queries the metadata of one topic. Raises Unavailable, or ReadFailed if retrying cannot help."""

    def __init__(self, options: KafkaOptions) -> None:
        self._options = options
        self._name = options.topic
        self._faults = Faults()
        self._consumer: Consumer = opened(Consumer, options.consumer(error_cb=self._faults))
        self._admin: AdminClient | None = None
        self._partitions = 0
        self._refreshed_at = -METADATA_SECONDS

    def partitions(self) -> int:
        """Return the number of partitions."""
        if time.monotonic() - self._refreshed_at >= METADATA_SECONDS:
            metadata = self._asked(self._consumer.list_topics, self._name, timeout=TIMEOUT_SECONDS)
            found = metadata.topics[self._name]
            if found.error is not None:
                raise self._problem(found.error)
            # Partitions are never removed; a broker that has just started may not know all of them yet.
            self._partitions = max(self._partitions, len(found.partitions))
            self._refreshed_at = time.monotonic()
            if self._partitions > MOST_PARTITIONS:
                raise ReadFailed(
                    f"the topic {self._name} has {self._partitions} partitions; at most "
                    f"{MOST_PARTITIONS} can be read"
                )
        return self._partitions

    def id(self) -> str:
        """Return the topic's id, or an empty string if the brokers do not support ids."""
        self.partitions()
        if self._admin is None:
            self._admin = opened(AdminClient, self._options.client(error_cb=self._faults))
        asked = self._admin.describe_topics(TopicCollection([self._name]), request_timeout=_ID_SECONDS)
        try:
            return str(asked[self._name].result().topic_id)
        except KafkaException as error:
            if error.args[0].code() == KafkaError._TIMED_OUT:  # there is no controller, as in a mock cluster
                return ""
            raise self._problem(error.args[0]) from None

    def starts(self) -> list[int]:
        """Return the first available offset of each partition."""
        return self._offsets(OFFSET_BEGINNING)

    def ends(self) -> list[int]:
        """Return the end of each partition; all transactions before it are complete."""
        return self._offsets(OFFSET_END)

    def at(self, time: int) -> list[int]:
        """Return each partition's first offset with this timestamp (in ms) or later, or else its end."""
        found = self._offsets(max(time, 0))
        if OFFSET_END not in found:
            return found
        return [
            end if offset == OFFSET_END else offset for offset, end in zip(found, self.ends(), strict=True)
        ]

    def _offsets(self, time: int) -> list[int]:
        wanted = [TopicPartition(self._name, number, time) for number in range(self.partitions())]
        found: Sequence[TopicPartition] = self._asked(
            self._consumer.offsets_for_times, wanted, timeout=TIMEOUT_SECONDS
        )
        by_number = {each.partition: each for each in found}
        for each in found:
            if each.error is not None:
                raise self._problem(each.error)
        return [by_number[number].offset for number in range(len(wanted))]

    def _asked(self, ask: Any, *arguments: Any, **named: Any) -> Any:
        self._consumer.poll(0)  # lets librdkafka report its errors
        try:
            response = ask(*arguments, **named)
        except KafkaException as error:
            self._consumer.poll(0)
            raise self._problem(error.args[0]) from None
        self._faults.clear()
        return response

    def _problem(self, error: KafkaError) -> Exception:
        self._refreshed_at = -METADATA_SECONDS
        reason = self._faults.reason(error)
        return problem(reason, self._name)

    def close(self) -> None:
        """Disconnect."""
        self._consumer.close()
        self._admin = None


def problem(reason: KafkaError, topic: str) -> Exception:
    """Convert a librdkafka error to one of ours."""
    if reason.code() in _GONE:
        return ReadFailed(f"the topic {topic} no longer exists; DROP the job")
    if reason.code() in _REFUSED:
        return ReadFailed(f"access to the topic {topic} denied: {said(reason)}; check the user's permissions")
    return Unavailable(f"the brokers of the topic {topic} do not respond: {said(reason)}")
