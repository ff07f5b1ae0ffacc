"""Reads queues into DataFrames, as a batch or as a stream.

An offset of a stream is the position of the last message read, in any queue. Everything at or before an
offset is final, so a batch that is read again after a crash has the same messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from ...store.encryption import Cipher
from ...store.log import LogReader, log_of_this_process
from ...store.position import BEGIN, Position
from ..errors import OptionError
from .messages import to_rows
from .options import EARLIEST, LATEST, ReadOptions

SPLIT_ROWS = 100_000
# Spark polls the latest offset every 10 ms; each call waits up to this long for new messages.
WAIT_SECONDS = 0.5


@dataclass
class Split(InputPartition):
    """A part of a range, for one task."""

    queues: dict[int, str]
    after: Position
    upto: Position


class QueueReader:
    """The common base of batch and stream readers."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._log = LogReader(options.url)

    def queues(self) -> dict[int, str]:
        """The names of the queues by id; raises OptionError if one does not exist."""
        found = self._log.queues(self._options.queues)
        if missing := [name for name in self._options.queues if name not in found]:
            raise OptionError(
                f"queue {', '.join(missing)} does not exist: push to it first, or correct the option"
            )
        return {id_: name for name, id_ in found.items()}

    def start(self) -> Position:
        """The position of the option `start`."""
        start = self._options.start
        if isinstance(start, datetime):
            return min(self._log.position_at(queue_id, start) for queue_id in self.queues())
        return {EARLIEST: BEGIN, LATEST: self._log.frontier()}[start]

    def splits(self, after: Position, upto: Position) -> list[Split]:
        """Split a range; deterministic as long as no message is deleted.

        There is at least one part: Spark creates an extra one if there is none.
        """
        queues = self.queues()
        bounds = [after, *self._log.cuts(list(queues), after, upto, SPLIT_ROWS), upto]
        return [Split(queues, *ends) for ends in pairwise(bounds)]

    def rows(self, split: Split) -> Iterator[pa.RecordBatch]:
        """Read the messages of a part, in log order."""
        cipher = Cipher(self._options.encryption_key)
        batches = log_of_this_process(self._options.url).read(
            list(split.queues), split.after, split.upto, payload=True, headers=True
        )
        return (to_rows(batch, split.queues, cipher) for batch in batches)


class QueueBatchReader(QueueReader, DataSourceReader):
    """Reads the current content of the queues."""

    def partitions(self) -> Sequence[InputPartition]:
        """The parts to read in parallel."""
        with self._log:
            after = self.start()
            return self.splits(after, self._log.end(list(self.queues()), after) or after)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one part; runs in a task."""
        assert isinstance(partition, Split)
        return self.rows(partition)


class QueueStreamReader(QueueReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the queues continuously."""

    def __init__(self, options: ReadOptions) -> None:
        super().__init__(options)
        self._target: Position | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """The start of a new query; one with a checkpoint resumes from there."""
        return _offset(self.start())

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """The maximum batch size."""
        most = self._options.max_rows
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Stop at the current end of the queues."""
        self._target = self._log.end(list(self.queues()), BEGIN) or BEGIN

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """The end of the next batch; `start` again if nothing new arrives within a short wait."""
        after = _position(start)
        if self._target is not None and after >= self._target:
            return start
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        wait = WAIT_SECONDS if self._target is None else 0.0
        by_name = {name: id_ for id_, name in self.queues().items()}
        end = self._log.next_end(by_name, after, most, wait)
        if end is None:
            return start
        return _offset(end if self._target is None else min(end, self._target))

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        """The current end of the log, for the query's progress."""
        end = self._log.end(list(self.queues()), BEGIN)
        return None if end is None else _offset(end)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The parts of a batch to read in parallel."""
        return self.splits(_position(start), _position(end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one part; runs in a task."""
        assert isinstance(partition, Split)
        return self.rows(partition)

    def stop(self) -> None:
        """Disconnect."""
        self._log.close()


def _offset(position: Position) -> dict[str, Any]:
    return {"position": str(position)}


def _position(offset: dict[str, Any]) -> Position:
    return Position.parse(offset["position"])
