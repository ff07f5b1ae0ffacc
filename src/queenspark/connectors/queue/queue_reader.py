"""Reads the queues of a stream for a sink. Positions are log positions, always below the horizon."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import polars as pl

from ...settings import decode_key
from ...sql.payload import Field
from ...store.definitions import Source as Queue
from ...store.encryption import Cipher
from ...store.log import LogReader, log_of_this_process
from ...store.position import Position
from ..fields import JsonFields
from ..reader import DEAD, Limits, Next, Read
from ..readers import Source

SPLIT_ROWS = 50_000
WAIT_SECONDS = 0.5
_SAMPLE = 1_000  # messages from which the average size, and so the size of a batch, is estimated

_Split = tuple[str, str]


class QueueOptions(msgspec.Struct, frozen=True):
    """The queues, and the encryption key if any of them needs it, as source options."""

    queues: tuple[Queue, ...]
    encryption_key: str | None = None

    def to_options(self) -> dict[str, str]:
        """Return them as string options."""
        return {"queue": msgspec.json.encode(self).decode()}


def open_reader(source: Source, fields: Sequence[Field], pseudo: Sequence[str] = ()) -> QueueReader:
    """Return the reader of the source's queues."""
    return QueueReader(source.url, msgspec.json.decode(source.options["queue"], type=QueueOptions), fields)


class QueueReader:
    """Reads messages and decodes their payloads."""

    is_bounded = False
    has_clock = False

    def __init__(self, url: str, options: QueueOptions, fields: Sequence[Field]) -> None:
        self._url = url
        self._log = LogReader(url)
        self._queues = {queue.queue_id: queue for queue in options.queues}
        self._ids = {queue.queue: queue.queue_id for queue in options.queues}
        key = options.encryption_key
        self._cipher = Cipher(decode_key(key) if key else None)
        self._fields = JsonFields(fields)

    def start(self) -> str:
        """Return the position before the first message for the sink."""
        return str(min(Position(queue.txid, queue.id) for queue in self._queues.values()))

    def next(self, position: str, limits: Limits) -> Next | None:
        """Return the end of the next batch, limited by rows and by the estimated size of messages."""
        after = Position.parse(position)
        size = self._log.average_bytes(list(self._queues), after, _SAMPLE)
        rows = max(1, min(limits.rows, int(limits.bytes / max(size, 1.0))))
        end = self._log.next_end(self._ids, after, rows, WAIT_SECONDS)
        if end is None:
            return None
        return Next(str(end), has_more=self._log.end(list(self._queues), end, 1) is not None)

    def splits(self, start: str, end: str) -> Sequence[_Split]:
        """Return ranges of the log; deterministic as long as no message is deleted."""
        after, upto = Position.parse(start), Position.parse(end)
        bounds = [after, *self._log.cuts(list(self._queues), after, upto, SPLIT_ROWS), upto]
        return [(str(first), str(last)) for first, last in pairwise(bounds)]

    def read(self, split: _Split) -> Iterator[Read]:
        """Yield the messages of a range, in order."""
        after, upto = map(Position.parse, split)
        log = log_of_this_process(self._url)
        for batch in log.read(list(self._queues), after, upto, payload=True, headers=True):
            yield self._decoded(pl.DataFrame(batch).sort("txid", "id"), batch.nbytes)

    def report(self, position: str) -> dict[str, Any]:
        """Return the position up to which the queues were read; retention depends on it."""
        return {"position": position}

    def close(self) -> None:
        """Disconnect."""
        self._log.close()

    def _decoded(self, frame: pl.DataFrame, size: int) -> Read:
        frame = self._from_start(frame)
        payloads = self._readable(frame)
        fields, unusual = self._fields.columns(payloads)
        names = {queue_id: queue.queue for queue_id, queue in self._queues.items()}
        records = frame.select(
            "txid",
            "id",
            pl.col("partition").cast(pl.String),
            "created_us",
            "transaction_id",
            "headers",
            pl.col("queue_id").replace_strict(names, return_dtype=pl.String).alias("queue"),
        ).hstack(fields.get_columns())
        if not unusual:
            return Read(records, pl.DataFrame(schema=DEAD), size)
        number = pl.int_range(pl.len())
        is_dead = number.is_in(list(unusual))
        dead = records.filter(is_dead).select(
            "txid", "id", "partition", pl.Series("reason", [unusual[each] for each in sorted(unusual)])
        )
        return Read(records.filter(~is_dead), dead, size)

    def _from_start(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Drop the messages before the start of their own queue."""
        starts = {(queue.txid, queue.id) for queue in self._queues.values()}
        if len(starts) == 1:
            return frame
        before = pl.lit(False)
        for queue in self._queues.values():
            earlier = (pl.col("txid") < queue.txid) | (
                (pl.col("txid") == queue.txid) & (pl.col("id") <= queue.id)
            )
            before |= (pl.col("queue_id") == queue.queue_id) & earlier
        return frame.filter(~before)

    def _readable(self, frame: pl.DataFrame) -> pl.Series:
        payloads = frame["payload"]
        if not frame["encrypted"].any():
            return payloads
        rows = frame.select("payload", "transaction_id", "encrypted").iter_rows()
        return pl.Series(
            "payload",
            [
                self._cipher.decrypt(payload, id_) if encrypted else payload
                for payload, id_, encrypted in rows
            ],
            dtype=pl.String,
        )
