"""Reads ranges of partitions in a task: exactly the visible records of these ranges."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import msgspec
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from ..reader import ReadFailed
from .kafka_options import Faults, KafkaOptions, opened, said
from .kafka_position import Range
from .topic import TIMEOUT_SECONDS, Unavailable, problem

PATIENCE_SECONDS = 60.0
"""Time that a task waits for records before it fails."""
_AT_ONCE = 10_000
_CHUNK_ROWS = 20_000
_CHUNK_BYTES = 16 * 1024 * 1024
_REMOVED = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)


class Chunk(NamedTuple):
    """Messages of one partition, in order."""

    partition: int
    messages: list[Message]


class Gap(NamedTuple):
    """Offsets that no longer exist, from `start` (inclusive) to `end` (exclusive)."""

    partition: int
    start: int
    end: int


class _Client:
    """A consumer that lives as long as the process, because Spark reuses workers."""

    def __init__(self, options: KafkaOptions) -> None:
        self.faults = Faults()
        self.consumer: Consumer = opened(Consumer, options.consumer(error_cb=self.faults))


@lru_cache(maxsize=8)
def _client(options: bytes) -> _Client:
    return _Client(msgspec.json.decode(options, type=KafkaOptions))


def read_ranges(
    options: KafkaOptions, ranges: tuple[Range, ...], patience: float = PATIENCE_SECONDS
) -> Iterator[Chunk | Gap]:
    """Yield the messages of the ranges, in order within each. Raises ReadFailed if the brokers send nothing.

    A range is complete when the consumer's offset reaches or passes its end: the last offsets may be
    transaction markers, aborted records, or records removed by compaction.
    """
    client = _client(msgspec.json.encode(options, order="sorted"))
    consumer, topic = client.consumer, options.topic
    left = {each.partition: each for each in ranges if each.start < each.end}
    buffers: dict[int, list[Message]] = {partition: [] for partition in left}
    sizes = dict.fromkeys(left, 0)
    offsets = {partition: each.start for partition, each in left.items()}  # the next ones
    try:
        client.faults.clear()
        consumer.assign([TopicPartition(topic, each.partition, each.start) for each in left.values()])
        deadline = time.monotonic() + patience
        while left:
            messages = _received(consumer)
            if not messages and time.monotonic() > deadline:
                raise ReadFailed(_silence(client.faults, topic, patience))
            if messages:
                deadline = time.monotonic() + patience
            ended: list[int] = []
            for message in messages:
                partition = message.partition()
                error = message.error()
                if error is not None:
                    yield from _error(consumer, error, message, topic, left, offsets, ended)
                    continue
                if partition is None or partition not in left:
                    continue
                offset = message.offset()
                assert offset is not None
                if offset >= left[partition].end:
                    ended.append(partition)
                    left.pop(partition)
                    continue
                buffers[partition].append(message)
                sizes[partition] += len(message)
                offsets[partition] = offset + 1
                if offset + 1 == left[partition].end:
                    ended.append(partition)
                    left.pop(partition)
            for partition, buffer in buffers.items():
                if buffer and (
                    partition not in left or len(buffer) >= _CHUNK_ROWS or sizes[partition] >= _CHUNK_BYTES
                ):
                    yield Chunk(partition, buffer)
                    buffers[partition], sizes[partition] = [], 0
            if ended and left:
                consumer.incremental_unassign([TopicPartition(topic, partition) for partition in ended])
    except KafkaException as error:
        raise ReadFailed(str(problem(client.faults.reason(error.args[0]), topic))) from None
    finally:
        consumer.unassign()


def _received(consumer: Consumer) -> list[Message]:
    """Return the received messages; waits only for the first one."""
    first = consumer.poll(0.2)
    return [] if first is None else [first, *consumer.consume(_AT_ONCE, timeout=0)]


def _error(
    consumer: Consumer,
    error: KafkaError,
    message: Message,
    topic: str,
    left: dict[int, Range],
    offsets: dict[int, int],
    ended: list[int],
) -> Iterator[Gap]:
    """Handle an event that is not a message."""
    partition = message.partition()
    if error.code() == KafkaError._PARTITION_EOF:
        offset = message.offset()
        if partition in left and offset is not None and offset >= left[partition].end:
            ended.append(partition)
            left.pop(partition)
        return
    if error.code() in _REMOVED and partition in left:
        wanted, at = left[partition], offsets[partition]
        (found,) = consumer.offsets_for_times(
            [TopicPartition(topic, partition, OFFSET_BEGINNING)], timeout=TIMEOUT_SECONDS
        )
        start = min(found.offset, wanted.end)
        if start <= at:
            raise ReadFailed(
                f"partition {partition} of the topic {topic} no longer has offset {at}: it lost "
                "records, or the topic was recreated; DROP the job and create it again"
            )
        yield Gap(partition, at, start)
        if start == wanted.end:
            ended.append(partition)
            left.pop(partition)
        else:
            offsets[partition] = start
            consumer.incremental_unassign([TopicPartition(topic, partition)])
            consumer.incremental_assign([TopicPartition(topic, partition, start)])
        return
    found_problem = problem(error, topic)
    if not isinstance(found_problem, Unavailable):
        raise found_problem


def _silence(faults: Faults, topic: str, seconds: float) -> str:
    reason = faults.reason(KafkaError(KafkaError._TIMED_OUT))
    return f"the brokers of the topic {topic} sent nothing for {seconds:.0f} s: {said(reason)}"
