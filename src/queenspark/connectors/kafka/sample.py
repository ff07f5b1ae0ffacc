"""A few messages of a topic, to know how large they are or what is in them."""

from __future__ import annotations

from collections.abc import Sequence

from ..reader import ReadFailed
from .kafka_options import KafkaOptions
from .kafka_position import Range
from .partition_reader import Gap, read_ranges
from .topic import TIMEOUT_SECONDS, Unavailable

_FEW = 100
_OVERHEAD = 50  # bytes of a record that are none of its key and value


def mean_bytes(options: KafkaOptions, partition: int, start: int, end: int) -> float:
    """About how large a message of a range is: the larger mean of its beginning and its end."""
    sizes = []
    for first in dict.fromkeys((start, max(start, end - _FEW))):
        found = messages(options, [Range(partition, first, min(first + _FEW, end))])
        sizes.append(sum(map(len, found)) / len(found) if found else 0.0)
    return max(sizes) + _OVERHEAD


def messages(options: KafkaOptions, ranges: Sequence[Range]) -> list[bytes]:
    """Keys and values of some messages. Raises Unavailable."""
    try:
        return [
            (message.key() or b"") + (message.value() or b"")
            for found in read_ranges(options, tuple(ranges), TIMEOUT_SECONDS)
            if not isinstance(found, Gap)
            for message in found.messages
        ]
    except ReadFailed as error:
        raise Unavailable(str(error)) from None
