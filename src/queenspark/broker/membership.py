"""Which records belong to a window: the broker's only implementation.

`windows.membership` decides by partition and time. For a stream that computes, the first stage of its plan
decides (`sql.running`): the same one that assigned the windows in the pipeline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import polars as pl

from ..formats.window_message import WindowMessage
from ..sql import thaw
from ..sql.running import MESSAGE, WindowReader
from ..store.definitions import Body, spec_of
from ..store.hydration import Record
from ..windows.membership import Members, Position, Span

Names = Mapping[int, tuple[str, str]]  # partition and queue names, by partition id


class Membership(NamedTuple):
    """The records of one window."""

    #: The filter that the database can apply.
    members: Members
    #: The key under which dropped records are recorded.
    noted_key: str
    window_key: str
    span: Span
    reader: WindowReader | None

    @property
    def is_exact(self) -> bool:
        """Whether the database returns members only, apart from dropped records."""
        return self.reader is None and self.members.path is None

    @property
    def is_scattered(self) -> bool:
        """Whether most records in the window's ranges may belong to other windows."""
        return self.reader is not None and self.members.partition is None

    async def only(self, records: list[Record], dropped: Collection[Position], names: Names) -> list[Record]:
        """Filter records by membership, given those that pass the database's filter."""
        positions = [(record.txid, record.id) for record in records]
        if self.reader is None:
            inside = self.members.contain(positions, [record.payload for record in records], dropped)
            return [record for record, is_there in zip(records, inside, strict=True) if is_there]
        if not records:
            return []
        # Decoding takes milliseconds; keep the event loop free.
        frame = _frame(records, names)
        found = await asyncio.to_thread(self.reader.inside, frame, self.window_key, self.span)
        return [
            record
            for record, position in zip(records, positions, strict=True)
            if position in found and position not in dropped
        ]


def membership(body: Body, window: WindowMessage) -> Membership:
    """Return the membership of a window, under its version of the definition."""
    span = (window.start, window.end)
    if body.query is None:
        members = Members.of(spec_of(body), body.event_time, body.partitioned, window.key, span)
        return Membership(members, window.key, window.key, span, None)
    reader = _reader(msgspec.json.encode(body.query, order="sorted"))
    spec = spec_of(body)
    # Event times are checked by the reader; the database filters by creation time.
    members = Members.of(spec, None, reader.by_partition, window.key, span)
    if spec.clock == "event":
        members = members._replace(created=None)
    return Membership(members, reader.engine_key(window.key), window.key, span, reader)


@lru_cache(maxsize=1000)
def _reader(query: bytes) -> WindowReader:
    kept: dict[str, Any] = msgspec.json.decode(query)
    return WindowReader(thaw(kept))


def _frame(records: Sequence[Record], names: Names) -> pl.DataFrame:
    """Convert records to messages of the first stage."""
    names_of = [names.get(record.partition_id, ("", "")) for record in records]
    columns: dict[str, list[Any]] = {
        "queue": [queue for _, queue in names_of],
        "partition": [partition for partition, _ in names_of],
    }
    for name in MESSAGE:
        if name not in columns:
            columns[name] = [getattr(record, name) for record in records]
    return pl.DataFrame(columns, schema=MESSAGE)
