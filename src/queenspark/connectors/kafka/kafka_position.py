"""A position in a topic: one offset per partition, and a time.

The topic is read as one log, merged by time. The time of a record in this log is the running maximum of the
Kafka timestamps in its partition. A batch reads all partitions up to the same time T, so records read later
are not older, except for those appended with a timestamp that was already read; these get the time T. Thus
the position of a record does not depend on how a backlog is divided into batches.
"""

from __future__ import annotations

from typing import Any

import msgspec

#: Bits of a record's id that hold its offset; the others hold its partition.
OFFSET_BITS = 48
MOST_PARTITIONS = 1 << (63 - OFFSET_BITS)


class KafkaPosition(msgspec.Struct, frozen=True):
    """A position in a topic: everything before it was read."""

    #: The topic's id, which tells it from a later topic of the same name; empty if brokers have no ids.
    topic: str
    #: T, in milliseconds.
    time: int
    #: The next offset of each partition.
    offsets: tuple[int, ...]

    @classmethod
    def parse(cls, position: Any) -> KafkaPosition:
        """Parse a position from Spark's checkpoint."""
        return msgspec.convert(position, cls)

    def to_json(self) -> dict[str, Any]:
        """Serialize the position for Spark's checkpoint."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


class Range(msgspec.Struct, frozen=True):
    """Offsets of one partition, from `start` (inclusive) to `end` (exclusive)."""

    partition: int
    start: int
    end: int


class KafkaSplit(msgspec.Struct, frozen=True):
    """The input of one task: ranges of partitions, with times from `floor` to `cap`, in milliseconds."""

    ranges: tuple[Range, ...]
    floor: int
    cap: int
