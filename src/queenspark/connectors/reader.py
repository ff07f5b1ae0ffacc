"""The interface of external sources, common to all connectors.

A job over an external source has its own Spark query (`pipeline/external`). The query asks the reader for the
next position, divides the range between two positions into splits, and reads the splits in tasks. Readers are
pickled into these tasks, so they connect lazily and keep no state beyond the position. Splits and rows are
deterministic: the same positions give the same splits, and the same split gives the same rows, so a batch
that is replayed after a crash gives the same result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import polars as pl

Position = Any
"""A position in a source: small JSON for Spark's checkpoint, with its keys in a fixed order."""

Split = Any
"""The input of one task: JSON or any picklable value."""

#: Columns of every frame of `Read.records`, in addition to two for each requested field (see `fields.py`).
#: The pair (txid, id) is the record's position: unique in the source and increasing within a shard (files:
#: file number and byte or row; Kafka: partition and offset). Rows without a key go to `partition`.
RECORD = {"txid": pl.Int64, "id": pl.Int64, "partition": pl.String}
#: Optional: the time at which the record was pushed, in microseconds. The default is the job's clock.
CREATED = {"created_us": pl.Int64}
#: Unreadable records: their position, and a reason for humans.
DEAD = {**RECORD, "reason": pl.String}


class Limits(NamedTuple):
    """The maximum size of a batch."""

    rows: int
    bytes: int


class Next(NamedTuple):
    """The end of the next batch."""

    position: Position
    #: Whether a backlog is known to remain after it. The job's clock stands still while it catches up.
    has_more: bool
    #: The source's own clock at this position, in microseconds (Kafka); None to use the job's clock.
    tick: int | None = None


class Read(NamedTuple):
    """A part of a split that fits in memory."""

    records: pl.DataFrame
    dead: pl.DataFrame
    bytes: int


class ReadFailed(Exception):
    """The source cannot be read any further: the problem, then the fix. The job fails and is retried."""


class Reader(Protocol):
    """Reads a source for one version of a job.

    Created by `readers.reader_of` from the source's options, the fields that the job reads, the job's
    `start`, and the ledger of data that positions refer to.
    """

    #: Whether the source is finite. After its last position, all open windows are emitted.
    is_bounded: bool
    #: Whether positions have a time of their own, `Next.tick`.
    has_clock: bool

    def start(self) -> Position:
        """Return the position before the job's first record. Called in the driver.

        Called once per job, or for `earliest` once per checkpoint.
        """

    def next(self, position: Position, limits: Limits) -> Next | None:
        """Return the end of the next batch, or None without new data. Runs in the driver; does not block."""

    def splits(self, start: Position, end: Position) -> Sequence[Split]:
        """Divide the range between two positions into splits for the tasks. Runs in the driver."""

    def read(self, split: Split) -> Iterator[Read]:
        """Yield the records of a split in the order of their positions. Runs in a task. Raises ReadFailed."""

    def report(self, position: Position) -> dict[str, Any]:
        """Return the progress at a position for humans: files, bytes, lagRecords and the like."""

    def close(self) -> None:
        """Disconnect."""
