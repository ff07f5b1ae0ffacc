"""From messages to records of streams: each message once for every stream that reads its queue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl
import pyarrow as pa

from ...formats.window_message import GLOBAL
from ...sql.running import MessageDecoder, reads_headers
from ...store.encryption import Cipher
from ...store.position import Position
from ...store.progress import Stream
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

    def __init__(self, definitions: Definitions, read: Range, buckets: Sequence[int], cipher: Cipher) -> None:
        self._buckets = pl.Series("bucket", buckets, dtype=pl.Int32)
        self._cipher = cipher
        self._queues = {
            source.queue_id: source.queue
            for stream in read.streams
            for source in definitions.by_stream[stream].body.sources
        }
        routes = []
        self._jobs: dict[int, list[tuple[Stream, Bounds]]] = {}
        for stream in sorted(read.streams):
            body = definitions.by_stream[stream].body
            until = (body.until.txid, body.until.id) if body.until is not None else (None, None)
            ends = (*until, definitions.before_us(stream))
            for source in body.sources:
                if source.queue_id not in read.queues:
                    continue
                bounds = (source.txid, source.id, *ends)
                if stream in definitions.plans:
                    self._jobs.setdefault(source.queue_id, []).append((stream, bounds))
                else:
                    routes.append((source.queue_id, *stream, body.partitioned, body.event_time, *bounds))
        self._after = read.after
        self._definitions = definitions
        self._readers: dict[int, _QueueReader] = {}
        streams = {stream for jobs in self._jobs.values() for stream, _ in jobs}
        self.needs_headers = any(reads_headers(definitions.plans[stream]) for stream in streams)
        self._routes = pl.DataFrame(routes, schema=_ROUTE, orient="row")
        self._cut = any(
            (txid, id_) > read.after for txid, id_ in self._routes.select("after_txid", "after_id").rows()
        ) or bool(self._routes["until_txid"].count() + self._routes["before_us"].count())
        self._paths = self._routes.drop_nulls("path").select("queue_id", "path").unique().sort("path").rows()

    @property
    def needs_payload(self) -> bool:
        """Whether somebody reads payloads."""
        return bool(self._paths or self._jobs)

    def route(self, batch: pa.RecordBatch) -> Iterator[tuple[int, bytes]]:
        """What a batch of messages gives, packed by bucket."""
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
        if self._jobs:
            for (queue_id,), rows in messages.partition_by("queue_id", as_dict=True).items():
                if queue_id in self._jobs:
                    self._compute(int(queue_id), rows, names, parcels)
        yield from parcels.packed()

    def _windows(self, messages: pl.DataFrame, partitions: pl.Series, parcels: Parcels) -> None:
        """Records of streams whose windows are over whole messages."""
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
        """What jobs make of the messages of a queue. A job that fails stops nobody else."""
        if queue_id not in self._readers:
            self._readers[queue_id] = _QueueReader(self._jobs[queue_id], self._definitions, self._after)
        reader = self._readers[queue_id]
        messages = rows.with_columns(
            names.gather(rows["name"]),
            self._payloads(rows).alias("payload"),
            pl.lit(self._queues[queue_id]).alias("queue"),
        )
        decoded = reader.decoder.decode(messages)
        for job in reader.jobs:
            try:
                job.run(decoded, parcels)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # noqa: BLE001 - a panic of Polars is no Exception
                parcels.add_failure(job.stream, f"{type(error).__name__}: {error}"[:MOST_REASON])

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
    """The jobs that read a queue, and what they read of its messages."""

    def __init__(self, jobs: list[tuple[Stream, Bounds]], definitions: Definitions, after: Position) -> None:
        self.decoder = MessageDecoder([definitions.plans[stream] for stream, _ in jobs])
        self.jobs = [JobStage(stream, definitions, _cut(bounds, after)) for stream, bounds in jobs]


def _cut(bounds: Bounds, after: Position) -> Bounds | None:
    """The bounds of a version, when some of what is read after a position can lie outside of them."""
    txid, id_, *ends = bounds
    is_cut = Position(txid or 0, id_ or 0) > after or any(end is not None for end in ends)
    return bounds if is_cut else None
