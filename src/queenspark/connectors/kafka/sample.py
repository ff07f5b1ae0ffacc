"""Samples messages of a topic to find their size or their columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from confluent_kafka import Message

from ..reader import ReadFailed
from .kafka_options import KafkaOptions
from .kafka_position import Range
from .partition_reader import Gap, read_ranges
from .topic import TIMEOUT_SECONDS, Unavailable

_FEW = 100
_OVERHEAD = 50  # bytes of a record besides key and value


def mean_bytes(options: KafkaOptions, partition: int, start: int, end: int) -> float:
    """Estimate the message size in a range: the larger of the means of its first and last messages.

    Raises Unavailable.
    """
    means = []
    for first in dict.fromkeys((start, max(start, end - _FEW))):
        found = [
            len(message.value() or b"") + len(message.key() or b"")
            for message in _messages(options, [Range(partition, first, min(first + _FEW, end))])
        ]
        means.append(sum(found) / len(found) if found else 0.0)
    return max(means) + _OVERHEAD


def values(options: KafkaOptions, ranges: Sequence[Range]) -> list[bytes]:
    """Return the values of the messages in the ranges. Raises Unavailable."""
    return [message.value() or b"" for message in _messages(options, ranges)]


def _messages(options: KafkaOptions, ranges: Sequence[Range]) -> Iterator[Message]:
    try:
        for found in read_ranges(options, tuple(ranges), TIMEOUT_SECONDS):
            if not isinstance(found, Gap):
                yield from found.messages
    except ReadFailed as error:
        raise Unavailable(str(error)) from None
