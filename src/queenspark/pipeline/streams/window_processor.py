"""The stateful step of a query: records of a bucket in, windows and rows out to their queues.

Shared by the streams query and the queries of single jobs.

Spark keeps the state of each bucket and restores it when a batch is rerun. The output of a batch is pushed
here, once: the sink tracks the progress of each bucket.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec
import pandas as pd
import polars as pl
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

from ...store.progress import End, ReadPoint, Stream, name_of, stream_of
from ...store.steps import Steps
from ...store.window_sink import Bucket, Parts, Pushed, WindowSink
from ...windows import Engine, Result, State
from ...windows.layout import NEVER
from ...windows.membership import is_counted_from
from ...windows.record_columns import records_in
from ..kept import Kept
from ..spark.secrets import reveal
from ..spark.worker import prepare_worker
from .bucket_state import BucketState
from .care import Care
from .definitions import Definitions
from .offset import Batch
from .outcome import Outcome
from .parcels import Unpacked, unpack
from .stream_source import definitions_of, steps_of_this_process

FIGURES = ("records", "windows", "open_windows", "state_bytes", "seconds")
OUTPUT = "bucket int, records long, windows long, open_windows long, state_bytes long, seconds double"
_COUNTING = {
    "stream": pl.Int64, "version": pl.Int32, "partitioned": pl.Boolean, "size": pl.Int64, "step": pl.Int64,
}  # fmt: skip


class WindowProcessor(StatefulProcessor):
    """One call per bucket and batch."""

    #: The job that owns this query; None for the streams query.
    job: Stream | None = None
    #: Additional output columns of a bucket, with their values.
    extra: Mapping[str, Any] = {}

    def __init__(self, url: str, epoch: int, buckets: tuple[int, ...], care: Care | None = None) -> None:
        self._url = url  # or a reference to it: see spark/secrets.py
        self._epoch = epoch
        self._buckets = buckets
        self.care = care or Care()

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._state = BucketState(handle)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Advance the engine, push its output, save its state."""
        began = time.perf_counter()
        prepare_worker()
        bucket = int(key[0])
        ends, packed = [], []
        for frame in rows:
            ends += [end for end in frame["end"] if end is not None]
            packed += [bytes(records) for records in frame["records"] if records is not None]
        step = Step(self, bucket, self.batch(ends[0]), unpack(packed), self._state, began)
        pushed = step.run()
        report = step.outcome.report
        seconds = time.perf_counter() - began
        figures = (step.records, pushed, report.open_windows, report.state_bytes, seconds)
        columns = {"bucket": bucket, **dict(zip(FIGURES, figures, strict=True)), **self.extra}
        yield pd.DataFrame({name: [value] for name, value in columns.items()})
        yield from self.more(bucket)

    def batch(self, text: str) -> Batch:
        """Decode the batch announced to a bucket."""
        return msgspec.json.decode(text, type=Batch)

    def more(self, bucket: int) -> Iterator[pd.DataFrame]:
        """Additional output of a bucket."""
        return iter(())

    def without_counted(
        self, bucket: int, batch: Batch, definitions: Definitions, records: pl.DataFrame
    ) -> pl.DataFrame:
        """Exclude records before the count windows left open by the previous run."""
        counting = [
            (*stream, row.body.partitioned, spec.rows, spec.each)
            for stream, row in definitions.by_stream.items()
            if row.body.query is None and (spec := definitions.specs[stream]).kind == "count"
        ]
        if not counting or records.is_empty():
            return records
        streams = pl.DataFrame(counting, schema=_COUNTING, orient="row")
        floors = sink_of_this_process(self._url).counted_from(self._sink_bucket(bucket), batch.end, streams)
        floor = records.select("stream", "version", "key", "txid", "id").join(
            floors, on=["stream", "version", "key"], how="left", maintain_order="left"
        )
        return records.filter(floor.select(is_counted_from()).to_series())

    def push(self, bucket: int, batch: Batch, outcome: Outcome, records: int, seconds: float) -> Pushed:
        """Push the output of a batch in a bucket."""
        progress = batch.end.progress(
            next_close=outcome.report.next_close_us, records=records, seconds=round(seconds, 4)
        )
        return sink_of_this_process(self._url).push(self._sink_bucket(bucket), progress, self.parts(outcome))

    def parts(self, outcome: Outcome) -> Parts:
        """The part of an outcome to push."""
        return outcome.parts()

    def _sink_bucket(self, bucket: int) -> Bucket:
        return Bucket(self._epoch, self._buckets.index(bucket), len(self._buckets), self.job)

    def definitions(self, seq: int) -> Definitions:
        """Return the definitions as of a seq."""
        return definitions_of(self._url, seq, self.job)

    def advance(
        self,
        engine: Engine,
        state: State | None,
        records: list[pl.DataFrame],
        safe: Mapping[Stream, int],
        was: Mapping[Stream, int],
        batch: Batch,
        bucket: int,
    ) -> Result:
        """Run the engine over a batch."""
        return engine.advance(state, records, safe, was)

    @property
    def steps(self) -> Steps:
        """The notes on the current job."""
        return steps_of_this_process(self._url)

    def close(self) -> None:
        """Do nothing: connections live as long as the process."""


class Step:
    """One batch of a bucket."""

    def __init__(
        self,
        processor: WindowProcessor,
        bucket: int,
        batch: Batch,
        given: Unpacked,
        states: BucketState,
        began: float,
    ) -> None:
        self._processor = processor
        self._bucket = bucket
        self._batch = batch
        self._states = states
        self._began = began
        self._definitions = definitions = processor.definitions(batch.end.seq)
        self._known = processor.definitions(batch.start.seq).by_stream
        frames = given.records
        if batch.end.again:
            frames = [processor.without_counted(bucket, batch, definitions, frame) for frame in frames]
        self._alive = definitions.alive(batch.start)
        self._before = states.load(bucket)
        self._cursors = self._moved_back(states.cursors())
        self._given = given._replace(
            records=[self._unread(frame) for frame in frames],
            rows=self._unread(given.rows),
            dead=self._unread(given.dead),
        )
        self.records = sum(map(records_in, self._given.records)) + self._given.rows.height

    def run(self) -> int:
        """Advance the engine, push, save the state; return the number of new windows and rows."""
        failed = dict(self._given.failed)
        if disabled := self._processor.care.failures(self._definitions):
            failed |= {stream: disabled[stream] for stream in self._with_work() if stream in disabled}
        if self._processor.care.is_on:
            self._rehearse(failed)
        self.outcome = self._advance(failed)
        seconds = time.perf_counter() - self._began
        pushed = self._processor.push(self._bucket, self._batch, self.outcome, self.records, seconds)
        if pushed.failed is not None and pushed.failed.keys() != self.outcome.failed.keys():
            # The batch was pushed before, with other failed jobs: restore their state as of then.
            self.outcome = self._advance(pushed.failed)
        self._keep()
        return pushed.new

    def _with_work(self) -> set[Stream]:
        """Jobs with records or state here that take part in this batch."""
        found = _streams(self._before)
        for frame in (*self._given.records, self._given.rows):
            found.update(frame.select("stream", "version").unique().rows())
        return {
            stream
            for stream in found
            if stream in self._alive
            and stream in self._definitions.plans
            and self._batch.end.read_point(stream) > self._read_point(stream)
        }

    def _rehearse(self, failed: Mapping[Stream, str]) -> None:
        """Compute each job alone, noting it, and discard the result."""
        for stream in sorted(self._with_work() - failed.keys()):
            others = {each: "" for each in self._alive if each != stream}
            with self._processor.steps.noted(stream):
                self._advance(others)

    def _advance(self, failed: Mapping[Stream, str]) -> Outcome:
        """Compute the output of the batch. Failed jobs keep their state."""
        end, start = self._batch.end, self._batch.start
        engine = self._definitions.engine(self._alive)
        failed = dict(failed)
        while True:
            given = self._given.without(failed)
            safe = _ticks(end, self._alive)
            for stream in failed:
                safe.pop(stream, None)
            known = safe if self._known is self._definitions.by_stream else safe.keys() & self._known.keys()
            was = _ticks(start, known)
            result = self._processor.advance(
                engine, self._before, given.records, safe, was, self._batch, self._bucket
            )
            for stream, reason in result.failed.items():
                if self._definitions.by_stream[stream].body.query is None:
                    raise RuntimeError(f"the windows of stream {stream[0]} failed: {reason}")
            failed |= result.failed
            outcome = Outcome(
                self._definitions,
                engine,
                self._batch,
                result,
                given.without(failed),
                failed,
                self._over(),
                self._read_point,
            )
            if outcome.failed.keys() == failed.keys():
                return outcome
            failed = outcome.failed

    def _keep(self) -> None:
        """Save the state, and the positions of jobs that failed here or elsewhere."""
        end = self._batch.end
        cursors = {
            name: cursor
            for name, cursor in self._cursors.items()
            if end.read_point(stream_of(name))[:2] < cursor
        }
        for stream in self.outcome.failed:
            cursors[name_of(stream)] = self._cursors.get(name_of(stream), self._read_point(stream)[:2])
        self._states.save(self._bucket, self._before, self.outcome.state, cursors)

    def _moved_back(self, cursors: dict[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
        """Move back the cursors of jobs that failed in another bucket."""
        found = dict(cursors)
        for name, point in self._batch.end.behind.items():
            before = self._read_point(stream_of(name))[:2]
            if (point[0], point[1]) < before and name not in found:
                found[name] = before
        return found

    def _read_point(self, stream: Stream) -> ReadPoint:
        """The position of a stream before the batch."""
        if stream in self._known:
            return self._batch.start.read_point(stream)
        if stream not in self._definitions.by_stream:
            return self._batch.start.live
        return (*self._definitions.begin(stream), NEVER)

    def _unread(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Exclude records that this bucket already processed before a job failed elsewhere."""
        if not self._cursors or frame.is_empty():
            return frame
        is_read = pl.lit(False)
        for name, (txid, id_) in self._cursors.items():
            stream, version = stream_of(name)
            is_before = (pl.col("txid") < txid) | ((pl.col("txid") == txid) & (pl.col("id") <= id_))
            is_read |= (pl.col("stream") == stream) & (pl.col("version") == version) & is_before
        return frame.filter(~is_read)

    def _over(self) -> set[Stream]:
        """The versions that end with this batch and still have state."""
        over = self._definitions.by_stream.keys() - self._alive.keys()
        return _streams(self._before) & over if over else over


_sinks = Kept(WindowSink)


def sink_of_this_process(url: str) -> WindowSink:
    """Return the cached sink of a database, by its URL or a reference to it."""
    return _sinks.of(reveal(url).url)


def _ticks(end: End, streams: Collection[Stream]) -> dict[Stream, int]:
    """The safe time of some streams."""
    found = dict.fromkeys(streams, end.tick)
    for name, point in end.behind.items():
        if (stream := stream_of(name)) in found:
            found[stream] = point[2]
    return found


def _streams(state: State | None) -> set[Stream]:
    """The streams and versions with state."""
    summaries = state.summaries() if state is not None else []
    return {stream for each in summaries for stream in each.numbers.values()}
