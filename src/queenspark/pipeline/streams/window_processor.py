"""The stateful step of the streams query: records of a bucket in, sealed windows out into their queues.

Spark keeps the state of each bucket and takes it back to before the batch when a batch is run again. The
windows of a batch are pushed here, once: the sink knows how far each bucket has come.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec
import pandas as pd
import polars as pl
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

from ...store.progress import Stream
from ...store.window_sink import WindowSink
from ...windows import Engine, Result, State
from ...windows.membership import is_counted_from, is_given_out
from ...windows.spec import OUTPUT as OUTPUT_COLUMNS
from .bucket_state import BucketState
from .definitions import Definitions
from .offset import Offset
from .routing import unpack
from .stream_source import definitions_of

OUTPUT = "bucket int, records long, windows long, open_windows long, state_bytes long, seconds double"
_STREAM = ("stream", "version")
_COUNTING = {
    "stream": pl.Int64, "version": pl.Int32, "partitioned": pl.Boolean, "size": pl.Int64, "step": pl.Int64,
}  # fmt: skip
_STATS = {
    "stream": pl.Int64, "version": pl.Int32, "watermark_us": pl.Int64, "open_windows": pl.Int64,
    "open_txid": pl.Int64, "open_id": pl.Int64, "records": pl.Int64, "windows": pl.Int64, "late": pl.Int64,
    "dropped": pl.Int64, "dead": pl.Int64,
}  # fmt: skip


class WindowProcessor(StatefulProcessor):
    """One call for each bucket and batch."""

    def __init__(self, url: str, epoch: int, buckets: tuple[int, ...]) -> None:
        self._url = url
        self._epoch = epoch
        self._buckets = buckets

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark is about to call."""
        self._state = BucketState(handle)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Advance the engine, push what it gives out, keep its state."""
        began = time.perf_counter()
        bucket = int(key[0])
        ends, packed = [], []
        for frame in rows:
            ends += [end for end in frame["end"] if end is not None]
            packed += [bytes(records) for records in frame["records"] if records is not None]
        end = msgspec.json.decode(ends[0], type=Offset)
        records = unpack(packed)
        definitions = definitions_of(self._url, end.seq)
        if end.again:
            records = self._without_counted(bucket, end, definitions, records)
        state = self._state.load(bucket)
        alive = definitions.alive(end.tick)
        engine = Engine({stream: definitions.specs[stream] for stream in alive})
        result = engine.advance(state, records, {stream: end.place(stream)[2] for stream in alive})
        over = (_streams(state) & definitions.by_stream.keys()) - alive.keys()
        took = time.perf_counter() - began
        windows = self._push(bucket, end, definitions, records, result, over, took)
        self._state.save(bucket, state, result.state)
        yield pd.DataFrame(
            {
                "bucket": [bucket],
                "records": [records.height],
                "windows": [windows],
                "open_windows": [result.report.open_windows],
                "state_bytes": [result.report.state_bytes],
                "seconds": [time.perf_counter() - began],
            }
        )

    def _without_counted(
        self, bucket: int, end: Offset, definitions: Definitions, records: pl.DataFrame
    ) -> pl.DataFrame:
        """Without what lies before the windows that the run before has left open, where windows count."""
        counting = [
            (*stream, row.body.partitioned, spec.rows, spec.each)
            for stream, row in definitions.by_stream.items()
            if (spec := definitions.specs[stream]).kind == "count"
        ]
        if not counting or records.is_empty():
            return records
        streams = pl.DataFrame(counting, schema=_COUNTING, orient="row")
        sink = sink_of_this_process(self._url)
        count = len(self._buckets)
        floors = sink.counted_from(self._buckets.index(bucket), count, end, streams)
        floor = records.select("stream", "version", "key", "txid", "id").join(
            floors, on=["stream", "version", "key"], how="left", maintain_order="left"
        )
        return records.filter(floor.select(is_counted_from()).to_series())

    def _push(
        self,
        bucket: int,
        end: Offset,
        definitions: Definitions,
        records: pl.DataFrame,
        result: Result,
        over: set[Stream],
        seconds: float,
    ) -> int:
        windows = _windows(result, definitions)
        progress = end.progress(
            next_close=result.report.next_close_us, records=records.height, seconds=round(seconds, 4)
        )
        return sink_of_this_process(self._url).push(
            self._epoch,
            self._buckets.index(bucket),
            len(self._buckets),
            progress,
            windows,
            _late(result),
            result.dead,
            _stats(records, windows, result, over),
        )

    def close(self) -> None:
        """Connections live on with the process."""


@lru_cache(maxsize=4)
def sink_of_this_process(url: str) -> WindowSink:
    """Workers of Spark live on from task to task, and so do their connections."""
    return WindowSink(url)


def _windows(result: Result, definitions: Definitions) -> pl.DataFrame:
    """What is pushed: windows that belong to their version, with the queue that they go to."""
    frames = [frame.select(OUTPUT_COLUMNS) for frame in result.rows]
    queues = pl.DataFrame(
        list(definitions.window_queues.items()),
        schema={"stream": pl.Int64, "queue_id": pl.Int64},
        orient="row",
    )
    if not frames:
        return pl.DataFrame(schema={"queue_id": pl.Int64})
    windows = pl.concat(frames).join(queues, on="stream", how="inner", maintain_order="left")
    bounds = [
        (*stream, row.body.from_us, row.body.until_us)
        for stream, row in definitions.by_stream.items()
        if row.body.from_us is not None or row.body.until_us is not None
    ]
    if not bounds:
        return windows
    schema = {"stream": pl.Int64, "version": pl.Int32, "from_us": pl.Int64, "until_us": pl.Int64}
    bounded = windows.join(
        pl.DataFrame(bounds, schema=schema, orient="row"), on=["stream", "version"], how="left",
        maintain_order="left",
    )  # fmt: skip
    return bounded.filter(is_given_out()).drop("from_us", "until_us")


def _late(result: Result) -> pl.DataFrame:
    """The late log: what was warned of, and what was dropped."""
    position = ["stream", "version", "txid", "id"]
    warned = result.late_log.join(result.dropped, on=position, how="anti").with_columns(dropped=pl.lit(False))
    return pl.concat([warned, result.dropped.with_columns(dropped=pl.lit(True))])


def _streams(state: State | None) -> set[Stream]:
    """The streams and versions of which something is kept."""
    tables = state.tables.values() if state is not None else ()
    return {
        (stream, version) for each in tables for stream, version in each["streams"].select(*_STREAM).rows()
    }


def _stats(records: pl.DataFrame, windows: pl.DataFrame, result: Result, over: set[Stream]) -> pl.DataFrame:
    """Numbers of the streams that the batch had something for, and of those that are over with it."""
    report = result.report
    counts: dict[str, dict[Stream, int]] = {
        "records": _count(records), "windows": _count(windows), "dead": _count(result.dead),
        "late": report.late_now, "dropped": report.dropped_now,
    }  # fmt: skip
    rows = []
    # Windows outside of their version's bounds are not pushed, but no longer open either.
    sealed = {stream for frame in result.rows for stream in _count(frame)}
    for stream in sorted(sealed.union(over, *counts.values())):
        open_ = report.open.get(stream)
        rows.append(
            {
                "stream": stream[0],
                "version": stream[1],
                "watermark_us": report.watermark.get(stream),
                "open_windows": open_.windows if open_ is not None else 0,
                "open_txid": open_.txid if open_ is not None else None,
                "open_id": open_.id if open_ is not None else None,
                **{name: of_streams.get(stream, 0) for name, of_streams in counts.items()},
            }
        )
    return pl.DataFrame(rows, schema=_STATS)


def _count(rows: pl.DataFrame) -> dict[Stream, int]:
    if rows.is_empty():
        return {}
    counted = rows.group_by(_STREAM).agg(pl.len())
    return {(stream, version): count for stream, version, count in counted.iter_rows()}
