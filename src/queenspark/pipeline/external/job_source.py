"""The Spark source of a job's query: external records, packed by bucket, and ticks.

The source of the streams query reads the log for all streams; this one uses the reader of a connector. The
job's clock stops while there is a backlog or the query is down, and then resumes, so the read rate does not
affect the windows. It falls behind the wall clock, so offsets have both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from time import monotonic, sleep
from typing import Any
from uuid import uuid4

import msgspec
import polars as pl
import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from ...connectors.queue.queue_reader import QueueOptions
from ...connectors.reader import Limits, Read, Reader
from ...connectors.readers import Source, reader_of
from ...settings import Settings
from ...sql import Plan
from ...sql.running import MessageDecoder
from ...sql.running.rows import DEAD
from ...store.definitions import Body, Definition, Outside
from ...store.pipeline import JobNews, PipelineStore
from ...store.progress import Stream
from ...windows.layout import NEVER
from ...windows.merging import Merging
from ...windows.spec import COUNTED
from ..spark.secrets import reveal
from ..spark.worker import prepare_worker
from ..streams.bucket_rows import BucketSource, announced, one_row
from ..streams.definitions import Definitions
from ..streams.job_stage import JobStage
from ..streams.parcels import Parcels, unpack
from ..streams.stream_source import definitions_of, store_of_this_process
from .job_offset import JobBatch, JobOffset

NAME = "queenspark-job"
OPTIONS = "options"
# Spark polls for the latest offset every 10 ms; each call blocks until there is one, for at most this long.
WAIT_SECONDS = 1.0
_POLL_SECONDS = 0.05  # initial poll interval without data; it doubles up to the longest
_LONGEST_POLL_SECONDS = 0.5
_TELL_SECONDS = 1.0
_LAG_US = 10_000_000  # a change of the lag rewrites the times of all keys, so it is not followed exactly


class JobOptions(msgspec.Struct, frozen=True):
    """The options of the source."""

    source: Source
    buckets: tuple[int, ...]
    max_rows: int
    max_bytes: int

    @property
    def job(self) -> Stream:
        """The version of the job."""
        return self.source.stream, self.source.version


class JobDataSource(BucketSource):
    """Spark's data source. Its only option is a reference to the sealed options (see spark/secrets.py)."""

    format = NAME

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """The reader."""
        text = reveal(self.options[OPTIONS]).more[OPTIONS]
        return JobReader(msgspec.json.decode(text, type=JobOptions))


@dataclass
class JobSplit(InputPartition):
    """The input of one task."""

    split: Any
    seq: int
    tick: int
    read_us: int
    end: str | None  # the batch, in the task that sends it to every bucket
    single: bool


class JobReader(DataSourceStreamReader):
    """Reads the source of one job."""

    def __init__(self, options: JobOptions) -> None:
        self._options = options
        self._idle_since: float | None = None
        self._pause = _POLL_SECONDS
        self._told, self._told_at, self._has_ended = -1, 0.0, False

    @property
    def _store(self) -> PipelineStore:
        return store_of_this_process(self._options.source.url)

    def _definitions(self, seq: int) -> Definitions:
        return definitions_of(self._options.source.url, seq, self._options.job)

    @cached_property
    def _reader(self) -> Reader:
        plan = self._definitions(self._store.job_news(self._options.job, "").seq).plans[self._options.job]
        return reader_of(self._options.source, plan.records.fields, plan.records.pseudo)

    def __reduce__(self) -> tuple[type[JobReader], tuple[JobOptions]]:
        """Pickle only the options."""
        return JobReader, (self._options,)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return the first offset of a new checkpoint.

        `latest` and times are evaluated once for a job, so that a lost checkpoint does not skip records.
        """
        start = self._reader.start
        is_fixed = self._options.source.start == "earliest"
        position = start() if is_fixed else self._store.job_start(self._options.job, start)
        return JobOffset(run=uuid4().hex[:12], position=position).to_json()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Return the end of the next batch, or `start` if there is still nothing to do after the wait."""
        before = msgspec.convert(start, JobOffset)
        deadline = monotonic() + WAIT_SECONDS
        while True:
            end = self._next(before)
            if end is not None:
                self._pause = _POLL_SECONDS
                return end.to_json()
            if monotonic() >= deadline:
                return start
            sleep(self._pause)
            self._pause = min(2 * self._pause, _LONGEST_POLL_SECONDS)

    def _next(self, start: JobOffset) -> JobOffset | None:
        """Return the end of the next batch, or None if there is nothing to do."""
        job = self._options.job
        self._tell(start)
        if start.ended or self._is_full(job):
            return None
        news = self._store.job_news(job, start.run)
        if job not in self._definitions(news.seq).plans:
            return None  # the job was dropped; its query will be stopped
        tick = news.now if start.tick == NEVER else start.tick + self._idle_us()
        lag = self._lag(start, news, tick)
        found = self._reader.next(start.position, Limits(self._options.max_rows, self._options.max_bytes))
        if found is not None:
            self._idle_since = None
            tick = tick if found.tick is None else max(start.tick, found.tick)
            return self._after(start, news, tick, lag=lag, position=found.position)
        if self._reader.is_bounded:
            return self._after(start, news, tick, ended=True)
        is_due = news.next_close is not None and tick + lag >= news.next_close
        has_news = is_due or news.seq != start.seq
        if has_news or self._idle_since is None:
            self._idle_since = monotonic()  # the tick covers the time before it
        return self._after(start, news, tick, lag=lag) if has_news else None

    def _lag(self, start: JobOffset, news: JobNews, tick: int) -> int:
        """Return how far the job's clock is behind the wall clock; 0 if no window depends on both."""
        spec = self._definitions(news.seq).specs.get(self._options.job)
        if spec is None or spec.clock != "event" or spec.kind in COUNTED:
            return 0
        if self._reader.is_bounded or self._reader.has_clock:
            return 0
        found = news.now - tick
        return found if found >= start.lag + _LAG_US else start.lag

    def _tell(self, start: JobOffset) -> None:
        """Report progress to the brokers. All rows up to `start` are pushed, or Spark would not poll."""
        is_new = start.ended and not self._has_ended
        if is_new or (start.n != self._told and monotonic() >= self._told_at + _TELL_SECONDS):
            report = msgspec.json.encode(self._reader.report(start.position)).decode()
            self._store.tell_of_job(self._options.job, report, finished=start.ended)
            self._told, self._told_at, self._has_ended = start.n, monotonic(), start.ended

    def _after(self, start: JobOffset, news: JobNews, tick: int, **changes: Any) -> JobOffset:
        single = start.single or news.has_late
        return msgspec.structs.replace(
            start, n=start.n + 1, tick=tick, now=news.now, seq=news.seq, single=single, **changes
        )

    def _idle_us(self) -> int:
        """Return the idle time in microseconds."""
        return 0 if self._idle_since is None else int((monotonic() - self._idle_since) * 1e6)

    def _is_full(self, job: Stream) -> bool:
        full = self._store.full_queues()
        return bool(full) and self._definitions(0).window_queues.get(job[0]) in full

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the splits of a batch; the first task also sends the batch to every bucket."""
        before, after = msgspec.convert(start, JobOffset), msgspec.convert(end, JobOffset)
        parts: Sequence[Any] = []
        if before.position != after.position:
            parts = self._reader.splits(before.position, after.position)
        splits = [
            JobSplit(part, after.seq, after.tick, after.read_us, None, after.single)
            for part in parts or [None]
        ]
        splits[0].end = msgspec.json.encode(JobBatch(before, after)).decode()
        return splits

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one split; runs in a task."""
        assert isinstance(partition, JobSplit)
        prepare_worker()
        options = self._options
        yield from announced(options.buckets, partition.end)
        if partition.split is None:
            return
        task = _task_of(msgspec.json.encode(options), partition.seq)
        for read in task.reader.read(partition.split):
            times = (partition.tick, partition.read_us)
            for bucket, packed in task.packed(read, *times, single=partition.single):
                yield one_row(bucket, None, packed)

    def stop(self) -> None:
        """Disconnect."""
        self._reader.close()


class _Task:
    """The decoder and reader of a job's tasks, created once per worker."""

    def __init__(self, options: JobOptions, seq: int) -> None:
        job = options.job
        definitions = definitions_of(options.source.url, seq, job)
        plan: Plan = definitions.plans[job]
        self._name = options.source.name
        self._stage = JobStage(job, definitions)
        self._merging = Merging.of(definitions.specs.get(job))
        self._needs_id = "_transaction_id" in plan.records.pseudo
        self._decoder = MessageDecoder([plan], payloads=False)
        self._buckets = pl.Series("bucket", options.buckets, dtype=pl.Int32)
        self.open_reader = partial(reader_of, options.source, plan.records.fields, plan.records.pseudo)
        self.reader = self.open_reader()

    def packed(self, read: Read, tick: int, read_us: int, *, single: bool) -> Iterator[tuple[int, bytes]]:
        """Yield the result of a part of a split, packed by bucket; with `single`, without merging records."""
        parcels = Parcels(self._buckets)
        if not read.records.is_empty():
            defaults = {
                "queue_id": pl.lit(0, dtype=pl.Int32),
                "queue": pl.lit(self._name),
                "created_us": pl.lit(tick, dtype=pl.Int64),
            }
            if "created_us" not in read.records.columns:
                defaults["read_us"] = pl.lit(read_us, dtype=pl.Int64)
            if self._needs_id:
                defaults["transaction_id"] = pl.format("{}-{}", "txid", "id")
            records = read.records.with_columns(
                value.alias(name) for name, value in defaults.items() if name not in read.records.columns
            )
            # There may be idle gaps between records with their own arrival times.
            merging = None if single or "created_us" in read.records.columns else self._merging
            self._stage.run(self._decoder.decode(records), parcels, merging)
        if not read.dead.is_empty():
            nothing = pl.lit(None, dtype=pl.Int64)
            dead = read.dead.with_columns(key=pl.col("partition"), start_us=nothing, end_us=nothing)
            self._stage.bury(dead.select(list(DEAD)), parcels)
        yield from parcels.packed()


def source_of(url: str, definition: Definition, plan: Plan, epoch: int) -> Source:
    """Return the source of a version of a job."""
    body = definition.body
    reads = body.reads or _queues(body)
    columns = tuple((name, str(kind)) for name, kind in (plan.relation.columns or {}).items())
    return Source(
        url=url, stream=definition.stream_id, version=definition.version, epoch=epoch, name=reads.name,
        connector=reads.connector, options=reads.options, columns=columns, start=body.start,
    )  # fmt: skip


def _queues(body: Body) -> Outside:
    """Return the queues of a stream as a source."""
    key = Settings.from_env().encryption_key
    return Outside(body.name, "queue", QueueOptions(body.sources, key).to_options())


def single_records(options: JobOptions, batch: JobBatch, bucket: int) -> list[pl.DataFrame]:
    """Read the unmerged records of a bucket in a batch from the source again; runs in a task."""
    task = _task_of(msgspec.json.encode(options), batch.end.seq)
    with closing(task.open_reader()) as reader:
        packed = [
            parcel
            for split in reader.splits(batch.start.position, batch.end.position)
            for read in reader.read(split)
            for number, parcel in task.packed(read, batch.end.tick, batch.end.read_us, single=True)
            if number == bucket
        ]
    return unpack(packed).records


@lru_cache(maxsize=4)
def _task_of(options: bytes, seq: int) -> _Task:
    """Return the cached task state; Spark reuses workers for many tasks."""
    return _Task(msgspec.json.decode(options, type=JobOptions), seq)
