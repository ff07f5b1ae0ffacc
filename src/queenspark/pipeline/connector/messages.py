"""Messages as the rows of a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from ...store.encryption import Cipher
from ...store.headers import from_text

SCHEMA = (
    "queue string, partition string, message_id long, transaction_id string, position string,"
    " created_at timestamp, data string, headers map<string,string>"
)
_TIME = pa.timestamp("us", tz="UTC")
_HEADERS = pa.map_(pa.string(), pa.string())


def to_rows(batch: pa.RecordBatch, queues: Mapping[int, str], cipher: Cipher) -> pa.RecordBatch:
    """Convert a batch of the log, with payload and headers, to rows of the data source in log order."""
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
        "headers": _maps(batch["headers"]),
    }
    return pa.RecordBatch.from_pydict(columns)


def _names(ids: pa.Array, queues: Mapping[int, str]) -> pa.Array:
    known = pa.array(queues.keys(), pa.int32())
    return pa.array(queues.values(), pa.string()).take(pc.index_in(ids, known))


def _maps(headers: pa.Array) -> pa.Array:
    """Convert headers to maps; empty for a message without headers."""
    if headers.null_count == len(headers):
        return pa.MapArray.from_arrays(
            [0] * (len(headers) + 1), pa.array([], pa.string()), pa.array([], pa.string())
        )
    return pa.array([list((from_text(text) or {}).items()) for text in headers.to_pylist()], _HEADERS)


def _readable(batch: pa.RecordBatch, cipher: Cipher) -> pa.Array:
    if not pc.any(batch["encrypted"]).as_py():
        return batch["payload"]
    rows = zip(*(batch[name].to_pylist() for name in ("payload", "transaction_id", "encrypted")), strict=True)
    return pa.array(
        [cipher.decrypt(payload, id_) if encrypted else payload for payload, id_, encrypted in rows],
        pa.string(),
    )
