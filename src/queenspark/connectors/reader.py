"""The face of a source outside, whatever connector it has.

A job over such a source has a Spark query of its own (`pipeline/external`), which asks a reader for the next
position, divides what lies between two positions into splits, and reads the splits in its tasks. A reader
is pickled into these tasks: it connects when it is first used, and keeps no state that a position does not
have. The same two positions give the same splits, and the same split the same rows, whenever they are asked
for: a batch that is run again after a crash gives what it gave before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import polars as pl

Position = Any
"""How far a source was read: JSON, small, written into Spark's checkpoint. Keys in a fixed order."""

Split = Any
"""What one task reads: JSON, or whatever can be pickled."""

#: Columns of every frame of `Read.records`, beside two for each wanted field (see `fields.py`). The pair
#: (txid, id) is the record's position: unique in the source, rising in each shard (for files: number of the
#: file and byte or row; for Kafka: partition and offset). `partition` is the partition of rows without a key.
RECORD = {"txid": pl.Int64, "id": pl.Int64, "partition": pl.String}
#: Optional: when the record was pushed, in microseconds. Without it, the clock of the job stands for it.
CREATED = {"created_us": pl.Int64}
#: Records that could not be read at all: where they are, and why, for people.
DEAD = {**RECORD, "reason": pl.String}


class Limits(NamedTuple):
    """How much a batch may have."""

    rows: int
    bytes: int


class Next(NamedTuple):
    """How far the next batch reads."""

    position: Position
    #: Whether more is known to be there after it: the clock of a job stands still while it catches up.
    has_more: bool
    #: The clock of the source at this position, in microseconds, when it has one (Kafka); None: the job's.
    tick: int | None = None


class Read(NamedTuple):
    """A part of a split, small enough for memory."""

    records: pl.DataFrame
    dead: pl.DataFrame
    bytes: int


class ReadFailed(Exception):
    """The source cannot be read on: the problem, then the fix. The job fails, and tries again later."""


class Reader(Protocol):
    """Reads a source for one version of a job.

    It is made by `readers.reader_of` with the source's options, the fields that the job reads, the job's
    `start`, and the ledger that keeps what positions only refer to.
    """

    #: Whether the source ends: after the last position comes the end, and every open window is given out.
    is_bounded: bool

    def start(self) -> Position:
        """The position before the first record, when the job begins; in the driver, once for a checkpoint."""

    def next(self, position: Position, limits: Limits) -> Next | None:
        """How far to read after a position; None when there is nothing. In the driver; it does not wait."""

    def splits(self, start: Position, end: Position) -> Sequence[Split]:
        """What lies between two positions, divided for the tasks; in the driver."""

    def read(self, split: Split) -> Iterator[Read]:
        """The records of a split, in the order of their positions; in a task. Raises ReadFailed."""

    def report(self, position: Position) -> dict[str, Any]:
        """For people, at a position: what was read and what is left, such as files, bytes, lagRecords."""

    def close(self) -> None:
        """Disconnect."""
