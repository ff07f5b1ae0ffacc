"""Routes messages to streams: each message once for every stream that reads its queue."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext

import polars as pl
import pyarrow as pa

from ...formats.window_message import GLOBAL
from ...sql.running import MessageDecoder
from ...store.definitions import Source
from ...store.encryption import Cipher
from ...store.errors import WorkerDied
from ...store.position import Position
from ...store.progress import Stream
from ...store.steps import Steps
from ...windows.event_time import event_times
from ...windows.membership import is_in_version
from .definitions import Definitions
from .job_stage import MOST_REASON, RECORD, Bounds, JobStage
from .parcels import Parcels, key_hashes
from .stream_plan import Range

_ROUTE = {
    "queue_id": pl.Int32, "stream": pl.Int64, "version": pl.Int32, "partitioned": pl.Boolean,
    "path": pl.String, "after_txid": pl.Int64, "after_id": pl.Int64, "until_txid": pl.Int64,
    "until_id": pl.Int64, "before_us": pl.Int64,
}  # fmt: skip


class Router:
    """Routes the messages of one range."""

    def __init__(
        self,
        definitions: Definitions,
        read: Range,
        buckets: Sequence[int],
        cipher: Cipher,
        disabled: Mapping[Stream, str] | None = None,
        steps: Steps | None = None,
    ) -> None:
        """Prepare; disabled jobs fail with the given reason. `steps` gets a note of each job."""
        self._disabled = disabled or {}
        self._steps = steps
        self._buckets = pl.Series("bucket", buckets, dtype=pl.Int32)
        self._cipher = cipher
        self._read = read
        self._definitions = definitions
        self._after = read.after
        self._readers: dict[int, _QueueReader] = {}
        self._headers = definitions.reading_headers & read.streams
        routes = []
        for stream in definitions.plain:
            if stream not in read.streams:
                continue
            body = definitions.by_stream[stream].body
            for source in body.sources:
                if source.queue_id in read.queues:
                    bounds = self._bounds(stream, source)
                    routes.append((source.queue_id, *stream, body.partitioned, body.event_time, *bounds))
        self._routes = pl.DataFrame(routes, schema=_ROUTE, orient="row")
        self._cut = any(
            (txid, id_) > read.after for txid, id_ in self._routes.select("after_txid", "after_id").rows()
        ) or bool(self._routes["until_txid"].count() + self._routes["before_us"].count())
        self._paths = self._routes.drop_nulls("path").select("queue_id", "path").unique().sort("path").rows()

    @property
    def needs_payload(self) -> bool:
        """Whether payloads are read."""
        return bool(self._paths) or any(map(self._has_jobs, self._read.queues))

    @property
    def needs_headers(self) -> bool:
        """Whether headers are read."""
        queues = self._definitions.queues(set(self._headers)) if self._headers else []
        return not set(queues).isdisjoint(self._read.queues)

    def _has_jobs(self, queue_id: int) -> bool:
        plans, streams = self._definitions.plans, self._read.streams
        return any(each in plans and each in streams for each in self._definitions.readers.get(queue_id, ()))

    def _bounds(self, stream: Stream, source: Source) -> Bounds:
        """The filter of a version on the messages of a source."""
        until = self._definitions.by_stream[stream].body.until
        ends = (until.txid, until.id) if until is not None else (None, None)
        return (source.txid, source.id, *ends, self._definitions.before_us(stream))

    def _jobs(self, queue_id: int) -> list[tuple[Stream, Bounds]]:
        """The jobs that read a queue, each with its filter."""
        definitions = self._definitions
        return [
            (stream, self._bounds(stream, source))
            for stream in definitions.readers.get(queue_id, ())
            if stream in definitions.plans and stream in self._read.streams
            for source in definitions.by_stream[stream].body.sources
            if source.queue_id == queue_id
        ]

    def route(self, batch: pa.RecordBatch) -> Iterator[tuple[int, bytes]]:
        """Route a batch of messages; yields the output packed by bucket."""
        if not batch.num_rows:
            return
        partition = batch["partition"]
        if not pa.types.is_dictionary(partition.type):
            partition = partition.dictionary_encode()
        messages = pl.DataFrame(pl.from_arrow(batch.drop_columns("partition"))).with_columns(
            name=pl.Series(partition.indices, dtype=pl.UInt32)
        )
        names = pl.Series("partition", partition.dictionary.to_pylist(), dtype=pl.String)
        parcels = Parcels(self._buckets)
        if not self._routes.is_empty():
            self._windows(messages, names, parcels)
        for (queue_id,), rows in messages.partition_by("queue_id", as_dict=True).items():
            if self._has_jobs(int(queue_id)):
                self._compute(int(queue_id), rows, names, parcels)
        yield from parcels.packed()

    def _windows(self, messages: pl.DataFrame, partitions: pl.Series, parcels: Parcels) -> None:
        """Route records of streams with windows over whole messages."""
        records = messages.select("txid", "id", "queue_id", "created_us", "name").join(
            self._routes, on="queue_id", how="inner", maintain_order="left"
        )
        if self._paths:
            times = self._event_times(messages)
            records = records.join(times, on=["id", "path"], how="left", maintain_order="left")
        else:
            records = records.with_columns(event_us=pl.lit(None, dtype=pl.Int64))
        if self._cut:
            records = records.filter(is_in_version())
        # The last name is for streams that are not partitioned.
        names = pl.concat([partitions, pl.Series("partition", [GLOBAL])]).alias("key")
        if not self._routes["partitioned"].all():
            name = pl.when("partitioned").then(pl.col("name")).otherwise(pl.lit(names.len() - 1, pl.UInt32))
            records = records.with_columns(name=name)
        hashes = key_hashes(names).gather(records["name"])
        records = records.with_columns(names.gather(records["name"]), source=pl.col("queue_id"))
        parcels.add_records(records.select(list(RECORD)), hashes)

    def _compute(self, queue_id: int, rows: pl.DataFrame, names: pl.Series, parcels: Parcels) -> None:
        """Run jobs over the messages of a queue. A failing job does not affect others."""
        if queue_id not in self._readers:
            self._readers[queue_id] = _QueueReader(self._jobs(queue_id), self._definitions, self._after)
        reader = self._readers[queue_id]
        messages = rows.with_columns(
            names.gather(rows["name"]),
            self._payloads(rows).alias("payload"),
            pl.lit(self._definitions.names[queue_id]).alias("queue"),
        )
        decoded = reader.decoded(messages)
        for stream in reader.streams:
            if stream in self._disabled:
                parcels.add_failure(stream, self._disabled[stream])
                continue
            try:
                with self._steps.noted(stream) if self._steps is not None else nullcontext():
                    reader.stage(stream).run(decoded(stream), parcels)
            except (KeyboardInterrupt, SystemExit, WorkerDied):
                raise
            except BaseException as error:  # noqa: BLE001 - a panic of Polars is no Exception
                parcels.add_failure(stream, f"{type(error).__name__}: {error}"[:MOST_REASON])

    def _event_times(self, messages: pl.DataFrame) -> pl.DataFrame:
        found = []
        for queue_id, path in self._paths:
            rows = messages.filter(pl.col("queue_id") == queue_id)
            times = event_times(self._payloads(rows), path)
            found.append(rows.select("id", path=pl.lit(path), event_us=times))
        return pl.concat(found)

    def _payloads(self, rows: pl.DataFrame) -> pl.Series:
        if not rows["encrypted"].any():
            return rows["payload"]
        texts = [
            self._cipher.decrypt(payload, transaction_id) if encrypted else payload
            for payload, transaction_id, encrypted in rows.select(
                "payload", "transaction_id", "encrypted"
            ).iter_rows()
        ]
        return pl.Series("payload", texts, dtype=pl.String)


class _QueueReader:
    """The jobs that read a queue, and their decoders of its messages."""

    def __init__(self, jobs: list[tuple[Stream, Bounds]], definitions: Definitions, after: Position) -> None:
        self.streams = [stream for stream, _ in jobs]
        self._bounds = {stream: _cut(bounds, after) for stream, bounds in jobs}
        self._definitions = definitions
        self._stages: dict[Stream, JobStage] = {}
        self._decoders: dict[tuple[Stream, ...], MessageDecoder] = {}

    def stage(self, stream: Stream) -> JobStage:
        """The first stage of a job."""
        if stream not in self._stages:
            self._stages[stream] = JobStage(stream, self._definitions, self._bounds[stream])
        return self._stages[stream]

    def decoded(self, messages: pl.DataFrame) -> Callable[[Stream], pl.DataFrame]:
        """Decode messages once for all jobs; if that fails, for each job alone, so that only one fails."""
        try:
            together = self._decoder(*self.streams).decode(messages)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # noqa: BLE001 - a panic of Polars is no Exception
            return lambda stream: self._decoder(stream).decode(messages)
        return lambda _: together

    def _decoder(self, *streams: Stream) -> MessageDecoder:
        if streams not in self._decoders:
            plans = [self._definitions.plans[stream] for stream in streams]
            self._decoders[streams] = MessageDecoder(plans)
        return self._decoders[streams]


def _cut(bounds: Bounds, after: Position) -> Bounds | None:
    """The bounds of a version, if messages after a position can lie outside of them."""
    txid, id_, *ends = bounds
    is_cut = Position(txid or 0, id_ or 0) > after or any(end is not None for end in ends)
    return bounds if is_cut else None
