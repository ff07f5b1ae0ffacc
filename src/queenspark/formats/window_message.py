"""The window message: the payload of each message in a window queue.

Written by the window sink (`payload`), read by the broker and the command line (`decode`, `WindowMessage`)
and by the SQL functions `window_sources` and `window_version`. Versions that run side by side read each
other's messages: fields are added with a default, and never removed or given another meaning.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import msgspec

if TYPE_CHECKING:
    import polars as pl


GLOBAL = "__GLOBAL__"
"""The only key of a stream that is not partitioned."""


LANES = 16
"""Partitions per key in the window queue of an unordered stream."""


def lane_of(key: str, window_id: str) -> str:
    """Return the partition of a window of an unordered stream: the same for all its revisions."""
    return f"{key}#{crc32(window_id.encode()) % LANES}"


LANE = f"#({'|'.join(map(str, range(LANES)))})$"
"""A regular expression for the part of a lane's name after the key, for PostgreSQL."""


def lanes_of(key: str) -> list[str]:
    """Return the partitions that may hold windows of a key, if versions of its stream are unordered.

    The first one holds those of ordered versions.
    """
    return [key, *(f"{key}#{number}" for number in range(LANES))]


class Range(NamedTuple):
    """A range of positions in a source queue, both ends inclusive."""

    queue_id: int
    first_txid: int
    first_id: int
    last_txid: int
    last_id: int


class WindowMessage(msgspec.Struct):
    """A sealed window: its identity, and the ranges of its records in the log. Times are in microseconds."""

    id: str
    stream: int
    version: int
    key: str
    start: int
    end: int
    count: int
    revision: int
    sources: list[Range]
    replaces: list[str] = []
    #: The computed values, as the text of a JSON object.
    values: str | None = None


decode = msgspec.json.Decoder(WindowMessage).decode

#: Engine columns with another name than the field.
_COLUMNS = {"id": "window_id", "start": "start_us", "end": "end_us"}
_RANGE_COLUMNS = {"queue_id": "source"}
#: Fields that determine whether a window has changed; others may depend on the version that wrote it.
_CONTENT = ("id", "start", "end", "count", "sources", "replaces")


def payload(columns: Collection[str]) -> pl.Expr:
    """Build the message as JSON text, from engine rows with these columns.

    A field with a default is omitted if it has no column.
    """
    import polars as pl  # imported here, because readers of messages do not need it

    ranges = pl.concat_list(
        [pl.element().struct.field(_RANGE_COLUMNS.get(name, name)).cast(pl.Int64) for name in Range._fields]
    )
    fields = []
    for field in msgspec.structs.fields(WindowMessage):
        column = _COLUMNS.get(field.name, field.name)
        if field.required or column in columns:
            value = pl.col(column).list.eval(ranges) if field.name == "sources" else pl.col(column)
            fields.append(value.alias(field.name))
    return pl.struct(fields).struct.json_encode()


def is_same(one: str, other: str) -> bool:
    """Whether two messages describe the same window content, whichever version wrote them."""
    if one == other:
        return True
    first, second = decode(one), decode(other)
    return all(getattr(first, name) == getattr(second, name) for name in _CONTENT)
