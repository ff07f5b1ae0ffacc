"""Messages as the rows of a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from ...store.encryption import Cipher

SCHEMA = (
    "queue string, partition string, message_id long, transaction_id string, position string,"
    " created_at timestamp, data string"
)
_TIME = pa.timestamp("us", tz="UTC")


def to_rows(batch: pa.RecordBatch, queues: Mapping[int, str], cipher: Cipher) -> pa.RecordBatch:
    """A batch of the log, with payload, in the columns of the data source and in the order of the log."""
    order = pc.sort_indices(batch, sort_keys=[("txid", "ascending"), ("id", "ascending")])
    batch = batch.take(order)
    columns = {
        "queue": _names(batch["queue_id"], queues),
        "partition": batch["partition"],
        "message_id": batch["id"],
        "transaction_id": batch["transaction_id"],
        "position": pc.binary_join_element_wise(
            batch["txid"].cast(pa.string()), batch["id"].cast(pa.string()), "-"
        ),
        "created_at": batch["created_us"].cast(_TIME),
        "data": _readable(batch, cipher),
    }
    return pa.RecordBatch.from_pydict(columns)


def _names(ids: pa.Array, queues: Mapping[int, str]) -> pa.Array:
    known = pa.array(queues.keys(), pa.int32())
    return pa.array(queues.values(), pa.string()).take(pc.index_in(ids, known))


def _readable(batch: pa.RecordBatch, cipher: Cipher) -> pa.Array:
    if not pc.any(batch["encrypted"]).as_py():
        return batch["payload"]
    rows = zip(*(batch[name].to_pylist() for name in ("payload", "transaction_id", "encrypted")), strict=True)
    return pa.array(
        [cipher.decrypt(payload, id_) if encrypted else payload for payload, id_, encrypted in rows],
        pa.string(),
    )
