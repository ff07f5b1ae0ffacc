"""A window on delivery: the records that its message refers to, read from the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ..formats.window_message import Range, WindowMessage
from ..store.definitions import Body
from ..store.headers import shown
from ..store.hydration import Record, Wish
from .broker import Broker
from .errors import bad_request
from .membership import Membership, membership
from .times import iso_us

_SMALL = 200  # records
_PART = 2000  # records per read, if some of them are not in the window
_SCATTERED_PART = 10_000  # the same if most of them may belong to other windows
_LAST_US = 253_402_300_799_999_999  # the end of the year 9999


class WindowRecord(msgspec.Struct, gc=False):
    """A record of a window."""

    id: str
    data: Raw
    payload: Raw
    created_at: str
    createdAt: str  # noqa: N815 - the wire has both
    queue: str
    partition: str
    transactionId: str  # noqa: N815
    headers: dict[str, str] | UnsetType = UNSET
    producerSub: str | None = None  # noqa: N815


class Page(NamedTuple):
    """Records of a window, and the cursor of the next page."""

    messages: list[WindowRecord]
    next_cursor: str | None


Cursor = tuple[int, int]


def parse_cursor(text: str | None) -> Cursor | None:
    """Parse the cursor of a page, or raise 400."""
    if not text:
        return None
    txid, dash, id_ = text.partition("-")
    if not (dash and txid.isascii() and txid.isdigit() and id_.isascii() and id_.isdigit()) or len(text) > 40:
        raise bad_request(f"cursor ({text:.100}) must be the nextCursor of the previous page")
    return min(int(txid), 2**62), min(int(id_), 2**62)


async def page_of(broker: Broker, window: WindowMessage, limit: int | None, after: Cursor | None) -> Page:
    """The records of a window after a cursor, at most `limit`."""
    body = await broker.store.streams.body(window.stream, window.version)
    found = [] if body is None else await _records(broker, window, body, limit, after)
    more = limit is not None and len(found) > limit
    found = found[:limit]
    cursor = f"{found[-1].txid}-{found[-1].id}" if more else None
    if body is not None and body.partitioned:
        queues = await broker.store.catalog.queue_names({record.queue_id for record in found})
        shown = [_shown(record, window.key, queues.get(record.queue_id, "")) for record in found]
    else:
        names = await broker.store.catalog.names_of({record.partition_id for record in found})
        shown = [_shown(record, *names.get(record.partition_id, ("", ""))) for record in found]
    return Page(shown, cursor)


async def _records(
    broker: Broker, window: WindowMessage, body: Body, limit: int | None, after: Cursor | None
) -> list[Record]:
    """The window's records, one more than `limit` if there are more."""
    chosen = membership(body, window)
    dropped: set[Cursor] = set()
    if chosen.members.leaves_out:
        async with broker.large_reads:
            dropped = await broker.store.hydration.dropped(window.stream, window.version, chosen.noted_key)
    ranges = _after(window.sources, after)
    if limit is None and not chosen.is_scattered:
        wish = Wish(ranges, chosen.members)
        if window.count <= _SMALL:  # batched with other small windows polled at the same time
            (records,) = await broker.window_reads.run([wish])
        else:
            async with broker.large_reads:
                (records,) = await broker.store.hydration.read([wish])
        return await _only(broker, chosen, records, dropped)
    wanted = window.count if limit is None else limit + 1
    found: list[Record] = []
    if chosen.is_exact and not dropped:
        part = wanted
    else:
        part = max(limit or 0, _SCATTERED_PART if chosen.is_scattered else _PART)
    while ranges and len(found) < wanted:
        async with broker.large_reads:
            next_part = await broker.store.hydration.page(Wish(ranges, chosen.members), part)
        found += await _only(broker, chosen, next_part, dropped)
        if len(next_part) < part:
            break
        ranges = _after(ranges, (next_part[-1].txid, next_part[-1].id))
    return found[:wanted]


async def _only(
    broker: Broker, chosen: Membership, records: list[Record], dropped: set[Cursor]
) -> list[Record]:
    names: dict[int, tuple[str, str]] = {}
    if chosen.reader is not None:
        names = await broker.store.catalog.names_of({record.partition_id for record in records})
    return await chosen.only(records, dropped, names)


def _after(ranges: Sequence[Range], cursor: Cursor | None) -> list[Range]:
    """The parts of the ranges after a position."""
    if cursor is None:
        return list(ranges)
    txid, id_ = cursor[0], cursor[1] + 1
    cut = [
        each._replace(first_txid=txid, first_id=id_)
        if (each.first_txid, each.first_id) < (txid, id_)
        else each
        for each in ranges
    ]
    return [each for each in cut if (each.first_txid, each.first_id) <= (each.last_txid, each.last_id)]


def _shown(record: Record, partition: str, queue: str) -> WindowRecord:
    data = Raw(record.payload.encode())
    created = iso_us(record.created_us)
    headers, producer = shown(record.headers)
    return WindowRecord(
        str(record.id),
        data,
        data,
        created,
        created,
        queue,
        partition,
        record.transaction_id,
        headers or UNSET,
        producer,
    )


def shown_time(microseconds: int) -> str:
    """Format the start or end of a window."""
    return iso_us(min(microseconds, _LAST_US))


def shown_window(window: WindowMessage, **more: Any) -> dict[str, Any]:
    """The wire fields of a window, without its messages."""
    return {
        "id": window.id,
        "key": window.key,
        "start": shown_time(window.start),
        "end": shown_time(window.end),
        "count": window.count,
        "revision": window.revision,
        "version": window.version,
        "replaces": window.replaces,
        **({} if window.values is None else {"aggregates": Raw(window.values.encode())}),
        **more,
    }
