"""How far a topic was read: one offset for each partition, and a time.

The topic is read as one log, merged by time. The time of a record in it is the running maximum of the Kafka
timestamps in its partition: up to it, nothing in the partition is newer. A batch reads every partition up to
the same time T, so records that are read later are not older, but for those that were appended after their
time had been read: these count as of T. So the place of a record does not depend on how a backlog is cut into
batches.
"""

from __future__ import annotations

from typing import Any

import msgspec

#: How many bits of a record's number its offset has; the partition has the others.
OFFSET_BITS = 48
MOST_PARTITIONS = 1 << (63 - OFFSET_BITS)


class KafkaPosition(msgspec.Struct, frozen=True):
    """Everything before it was read."""

    #: The topic's id, which another topic of the same name does not have; empty where brokers do not tell it.
    topic: str
    #: T, in milliseconds.
    time: int
    #: The next offset of each partition.
    offsets: tuple[int, ...]

    @classmethod
    def parse(cls, position: Any) -> KafkaPosition:
        """A position as Spark's checkpoint keeps it."""
        return msgspec.convert(position, cls)

    def to_json(self) -> dict[str, Any]:
        """For Spark's checkpoint."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


class Range(msgspec.Struct, frozen=True):
    """Offsets of one partition, from `start` up to but without `end`."""

    partition: int
    start: int
    end: int


class KafkaSplit(msgspec.Struct, frozen=True):
    """What one task reads: ranges of some partitions, with times from `floor` to `cap`, in milliseconds."""

    ranges: tuple[Range, ...]
    floor: int
    cap: int
