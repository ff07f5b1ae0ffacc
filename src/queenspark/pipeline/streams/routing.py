"""From messages to records of streams: each message once for every stream that reads its queue."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

import polars as pl
import pyarrow as pa
from pandas.util import hash_array

from ...formats.window_message import GLOBAL
from ...store.encryption import Cipher
from ...windows.event_time import event_times
from ...windows.membership import is_in_version
from .definitions import Definitions
from .stream_plan import Range

RECORD = {
    "stream": pl.Int64, "version": pl.Int32, "key": pl.String, "source": pl.Int32, "txid": pl.Int64,
    "id": pl.Int64, "created_us": pl.Int64, "event_us": pl.Int64,
}  # fmt: skip
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
        routes = []
        for stream in sorted(read.streams):
            body = definitions.by_stream[stream].body
            until = (body.until.txid, body.until.id) if body.until is not None else (None, None)
            ends = (*until, definitions.before_us(stream))
            routes += [
                (source.queue_id, *stream, body.partitioned, body.event_time, source.txid, source.id, *ends)
                for source in body.sources
                if source.queue_id in read.queues
            ]
        self._routes = pl.DataFrame(routes, schema=_ROUTE, orient="row")
        self._cut = any(
            (txid, id_) > read.after for txid, id_ in self._routes.select("after_txid", "after_id").rows()
        ) or bool(self._routes["until_txid"].count() + self._routes["before_us"].count())
        self._paths = self._routes.drop_nulls("path").select("queue_id", "path").unique().sort("path").rows()

    @property
    def needs_payload(self) -> bool:
        """Whether a stream reads its event times from payloads."""
        return bool(self._paths)

    def route(self, batch: pa.RecordBatch) -> Iterator[tuple[int, pl.DataFrame]]:
        """The records of a batch of messages, by bucket."""
        partition = batch["partition"]
        if not pa.types.is_dictionary(partition.type):
            partition = partition.dictionary_encode()
        messages = pl.DataFrame(pl.from_arrow(batch.drop_columns("partition"))).with_columns(
            name=pl.Series(partition.indices, dtype=pl.UInt32)
        )
        if messages.is_empty():
            return
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
        names = pl.Series("key", [*partition.dictionary.to_pylist(), GLOBAL], dtype=pl.String)
        if not self._routes["partitioned"].all():
            name = pl.when("partitioned").then(pl.col("name")).otherwise(pl.lit(names.len() - 1, pl.UInt32))
            records = records.with_columns(name=name)
        records = records.with_columns(
            names.gather(records["name"]), self._bucket(records, names), source=pl.col("queue_id")
        ).select("bucket", *RECORD)
        for (bucket,), part in records.partition_by("bucket", as_dict=True, include_key=False).items():
            yield int(bucket), part

    def _bucket(self, records: pl.DataFrame, names: pl.Series) -> pl.Series:
        """The bucket of each record: a hash of stream and key that will be the same for ever."""
        hashes = pl.Series(hash_array(names.to_numpy().astype(object), categorize=False), dtype=pl.UInt64)
        count = self._buckets.len()
        number = ((hashes % count).gather(records["name"]) + records["stream"].cast(pl.UInt64)) % count
        return self._buckets.gather(number)

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


def pack(records: pl.DataFrame) -> bytes:
    """Records as bytes; few of them, because Spark copies them again and again."""
    file = io.BytesIO()
    records.write_ipc_stream(file, compression="zstd")
    return file.getvalue()


def unpack(packed: Sequence[bytes]) -> pl.DataFrame:
    """Records again, in the order of the log."""
    if not packed:
        return pl.DataFrame(schema=RECORD)
    records = pl.concat([pl.read_ipc_stream(each) for each in packed])
    return records.sort("txid", "id")
