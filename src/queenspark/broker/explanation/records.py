"""The records of a stream's open windows, read again from the log.

The pipeline keeps its open windows in Spark's state, which a broker cannot read. The database only has their
number and the position of their first record; from there on the log has the rest.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import polars as pl

from ...formats.window_message import GLOBAL, Range
from ...sql import thaw
from ...sql.running import MESSAGE, MessageDecoder, RecordStage
from ...store.definitions import Body
from ...store.hydration import Record, Wish
from ...store.standing import Standing
from ...windows.event_time import event_times
from ...windows.membership import Members
from ..broker import Broker

MOST_READ = 10_000
"""Maximum number of records to read."""

_ALL = Members(partition=None, created=None, path=None, time=(0, 0), leaves_out=False)
_COLUMNS = ["key", "txid", "id", "created_us", "time_us"]


class OpenRecords(NamedTuple):
    """Records since the first one of an open window, up to the pipeline's position, in log order."""

    #: Columns key, txid, id, created_us and time_us, the time used for windowing.
    frame: pl.DataFrame
    #: Whether all of them were read.
    is_complete: bool
    #: Whether the first one is no longer in the log.
    is_first_gone: bool


async def open_records(broker: Broker, standing: Standing, most: int = MOST_READ) -> OpenRecords | None:
    """Return the first records of open windows and later ones; None when no window is open."""
    first, read_point, body = standing.first_open, standing.read_point, standing.definition.body
    if not standing.open_windows or first is None or read_point is None:
        return None
    end = read_point[:2] if body.until is None else min(read_point[:2], (body.until.txid, body.until.id))
    end = max(end, first)  # a failed job is reset to before its open windows
    ranges = [
        Range(source.queue_id, *max(first, (source.txid, source.id + 1)), *end) for source in body.sources
    ]
    async with broker.large_reads:
        found = await broker.store.hydration.page(Wish(ranges, _ALL), most + 1)
    is_first_gone = not found or (found[0].txid, found[0].id) != first
    names = await broker.store.catalog.names_of({record.partition_id for record in found})
    partitions = [names.get(record.partition_id, ("", ""))[0] for record in found]
    read = _of_job if body.query is not None else _of_stream
    frame = await asyncio.to_thread(read, standing, found[:most], partitions[:most])
    return OpenRecords(frame.select(_COLUMNS), len(found) <= most, is_first_gone)


def _of_stream(standing: Standing, records: list[Record], partitions: list[str]) -> pl.DataFrame:
    """Records of a stream over whole messages; those without event time are dropped."""
    body = standing.definition.body
    frame = _messages(body, records, partitions)
    key = pl.col("partition") if body.partitioned else pl.lit(GLOBAL)
    if body.event_time is None:
        return frame.with_columns(key=key, time_us=pl.col("created_us"))
    times = event_times(frame["payload"], body.event_time).alias("time_us")
    return frame.with_columns(times, key=key).drop_nulls("time_us")


def _of_job(standing: Standing, records: list[Record], partitions: list[str]) -> pl.DataFrame:
    """Records that satisfy the condition of a job, with its key and its time."""
    definition = standing.definition
    assert definition.body.query is not None
    plan = thaw(definition.body.query)
    messages = MessageDecoder([plan]).decode(_messages(definition.body, records, partitions))
    taken = RecordStage(plan, definition.stream_id, definition.version).run(messages).records
    time = "event_us" if plan.window is not None and plan.window.clock == "event" else "created_us"
    return taken.with_columns(time_us=pl.col(time))


def _messages(body: Body, records: list[Record], partitions: list[str]) -> pl.DataFrame:
    queues = {source.queue_id: source.queue for source in body.sources}
    rows = [
        (
            record.queue_id, record.txid, record.id, record.created_us, queues[record.queue_id], partition,
            record.transaction_id, record.payload, record.headers,
        )
        for record, partition in zip(records, partitions, strict=True)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=MESSAGE, orient="row")
