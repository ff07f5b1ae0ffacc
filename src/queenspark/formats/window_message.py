"""The window message: the payload of each message in a window queue.

The window sink writes it (`payload`). The broker and the command line read it (`decode`, `WindowMessage`),
and so do the SQL functions `window_sources` and `window_version`. Versions that run side by side read the
messages of each other: fields are added with a default, and never removed or given another meaning.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import msgspec

if TYPE_CHECKING:
    import polars as pl


GLOBAL = "__GLOBAL__"
"""The one key of a stream that is not partitioned."""


LANES = 16
"""Partitions of a window queue for the windows of one key, when their order does not matter."""


def lane_of(key: str, window_id: str) -> str:
    """The partition of a window whose stream is not ordered: the same one for every revision of it."""
    return f"{key}#{crc32(window_id.encode()) % LANES}"


class Range(NamedTuple):
    """From one position of a source queue to another, both included."""

    queue_id: int
    first_txid: int
    first_id: int
    last_txid: int
    last_id: int


class WindowMessage(msgspec.Struct):
    """A sealed window: which one it is, and where in the log its records are. Times are microseconds."""

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
    #: What the stream computes, as the text of a JSON object.
    values: str | None = None


decode = msgspec.json.Decoder(WindowMessage).decode

#: Columns of the engine's rows that have another name than the field.
_COLUMNS = {"id": "window_id", "start": "start_us", "end": "end_us"}
_RANGE_COLUMNS = {"queue_id": "source"}
#: Fields that tell whether a window has changed; others may depend on the version that wrote it.
_CONTENT = ("id", "start", "end", "count", "sources", "replaces")


def payload(columns: Collection[str]) -> pl.Expr:
    """The message as JSON text, of rows of the engine with these columns.

    A field with a default is left out when there is no column for it.
    """
    import polars as pl  # here, because whoever only reads messages need not have it

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
    """Whether two messages say the same of a window, whichever version has written them."""
    if one == other:
        return True
    first, second = decode(one), decode(other)
    return all(getattr(first, name) == getattr(second, name) for name in _CONTENT)
