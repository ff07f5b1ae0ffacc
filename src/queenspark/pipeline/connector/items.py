"""Rows of a DataFrame as messages to push."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql.types import ArrayType, MapType, StringType, StructType

from ...store.headers import headers_fault, to_text
from ...store.names import ids_fault, name_fault
from ...store.payloads import depth_fault, size_fault
from ...store.push import Item
from ..errors import OptionError
from .options import Limits

COLUMNS = ("data", "partition", "transaction_id", "headers")
DEFAULT_PARTITION = "Default"

_encode = msgspec.json.Encoder(decimal_format="number").encode
_check = msgspec.json.Decoder(msgspec.Raw).decode


def check_schema(schema: StructType) -> None:
    """Raise OptionError if the columns of a DataFrame are not those of messages."""
    if "data" not in schema.names:
        raise OptionError('column data is missing: make one, such as to_json(struct("*")).alias("data")')
    if unknown := [name for name in schema.names if name not in COLUMNS]:
        raise OptionError(
            f"unknown column {unknown[0]}: select only {', '.join(COLUMNS)},"
            " and put everything else into data"
        )
    for name in schema.names:
        kind = schema[name].dataType
        if name == "data" and not isinstance(kind, StringType | StructType | MapType | ArrayType):
            raise OptionError(
                f"column data is of type {kind.simpleString()}: use JSON text, a struct, a map or an array"
            )
        if name == "headers":
            if not (
                isinstance(kind, MapType)
                and isinstance(kind.keyType, StringType)
                and isinstance(kind.valueType, StringType)
            ):
                raise OptionError(
                    f"column headers is of type {kind.simpleString()}: use a map<string,string>"
                )
        elif name != "data" and not isinstance(kind, StringType):
            raise OptionError(f"column {name} is of type {kind.simpleString()}: cast it to string")


class RowIds:
    """Transaction ids for rows without one: the same rows of the same write get the same ids, in any order.

    An id is a hash of the write's name, the task, partition, data and headers; equal rows of a task are
    numbered.
    """

    def __init__(self, *names: object) -> None:
        self._begin = blake2b("\0".join(map(str, names)).encode(), digest_size=16)
        self._seen: dict[bytes, int] = {}

    def of(self, partition: str, data: bytes, headers: Mapping[str, str] | None = None) -> str:
        """Return the id of the next row with this content."""
        hashed = self._begin.copy()
        hashed.update(b"\0%b\0%b" % (partition.encode(), data))
        if text := to_text(dict(sorted(headers.items())) if headers else None):
            hashed.update(b"\0%b" % text.encode())
        digest = hashed.digest()
        count = self._seen.get(digest, 0)
        self._seen[digest] = count + 1
        if count:
            hashed.update(b"\0%d" % count)
        return f"spark-{hashed.hexdigest()}"


def to_items(
    batches: Iterable[pa.RecordBatch], queue: str, row_ids: RowIds, limits: Limits
) -> Iterator[Item]:
    """Convert rows to messages; raises OptionError for an invalid value."""
    for batch in batches:
        for partition, given_id, data, headers in zip(*_columns(batch), strict=True):
            if fault := name_fault(partition):
                raise OptionError(f"column partition: {partition!r:.100} {fault}")
            if given_id is not None and (fault := ids_fault([given_id])):
                raise OptionError(f"column transaction_id: {given_id!r:.100} {fault}")
            if fault := size_fault(data, limits.most_bytes) or depth_fault(data, limits.most_depth):
                raise OptionError(f"column data: a value {fault}")
            if headers and (fault := _headers_fault(headers)):
                raise OptionError(f"column headers: a value {fault}")
            transaction_id = given_id or row_ids.of(partition, data, headers)
            yield Item(queue, partition, transaction_id, None, msgspec.Raw(data), headers)


def _headers_fault(headers: Mapping[str, str | None]) -> str | None:
    for name, value in headers.items():
        if value is None:
            return f"has null under {name!r}: remove it with map_filter"
    return headers_fault({name: value or "" for name, value in headers.items()})


def _columns(
    batch: pa.RecordBatch,
) -> tuple[list[str], list[str | None], list[bytes], list[dict[str, str] | None]]:
    names = batch.schema.names
    nothing: list[str | None] = [None] * len(batch)
    partitions: list[str | None] = batch["partition"].to_pylist() if "partition" in names else nothing
    ids: list[str | None] = batch["transaction_id"].to_pylist() if "transaction_id" in names else nothing
    data = batch["data"].to_pylist(maps_as_pydicts="strict")
    text = pa.types.is_string(batch["data"].type) or pa.types.is_large_string(batch["data"].type)
    return (
        [DEFAULT_PARTITION if name is None else name for name in partitions],
        ids,
        [_checked(value) if text else _encode(value) for value in data],
        batch["headers"].to_pylist(maps_as_pydicts="strict") if "headers" in names else [None] * len(batch),
    )


def _checked(value: Any) -> bytes:
    """Check that a value is JSON text, and return it unchanged."""
    if value is None:
        return b"null"
    try:
        return bytes(_check(value))
    except msgspec.DecodeError as error:
        raise OptionError(
            f"column data: {value!r:.100} is not valid JSON ({error}): use to_json, or a struct"
        ) from None
