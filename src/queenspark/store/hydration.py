"""Hydration: the log records that a window message refers to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from ..formats.window_message import Range
from ..windows.membership import Members
from .database import Database
from .encryption import Cipher


class Record(NamedTuple):
    """A message of a source queue."""

    txid: int
    id: int
    queue_id: int
    partition_id: int
    created_us: int
    encrypted: bool
    transaction_id: str
    payload: str
    headers: str | None  # JSON text


_RANGES = tuple(f"{name}s" for name in Range._fields)


class Wish(NamedTuple):
    """A request for records of a window; the database applies the part of the filter that it can."""

    ranges: Sequence[Range]
    members: Members


class Leased(NamedTuple):
    """A live lease on a window; without a transaction id if it was already acked."""

    group: str
    partition_id: int
    queue_id: int
    expires_at: datetime
    transaction_id: str | None
    payload: str | None


class Hydration:
    """Reads the records of windows, and the windows of leases."""

    def __init__(self, database: Database, cipher: Cipher) -> None:
        self._database = database
        self._cipher = cipher

    async def read(self, wishes: Sequence[Wish]) -> list[list[Record]]:
        """Read the records of several windows, each in log order."""
        ranges = [(n, *each) for n, wish in enumerate(wishes, 1) for each in wish.ranges]
        params = {
            **_columns(("windows", *_RANGES), ranges),
            "partitions": [wish.members.partition for wish in wishes],
            "from_us": [_from_us(wish.members) for wish in wishes],
            "until_us": [_until_us(wish.members) for wish in wishes],
        }
        found: list[list[Record]] = [[] for _ in wishes]
        for n, *row in await self._database.rows("window_records", params):
            found[n - 1].append(self._readable(Record(*row)))
        return found

    async def page(self, wish: Wish, limit: int) -> list[Record]:
        """Read the first records of a window."""
        params = {
            **_columns(_RANGES, wish.ranges),
            "partition": wish.members.partition,
            "from_us": _from_us(wish.members),
            "until_us": _until_us(wish.members),
            "limit": limit,
        }
        return [self._readable(Record(*row)) for row in await self._database.rows("window_page", params)]

    async def dropped(self, stream_id: int, version: int, key: str) -> set[tuple[int, int]]:
        """Return the positions of a key's records that were dropped as late."""
        params = {"stream_id": stream_id, "version": version, "key": key}
        return {(txid, id_) for txid, id_ in await self._database.rows("dropped_records", params)}

    async def leased(self, lease_id: UUID) -> Leased | None:
        """Return the window of a live lease."""
        row = await self._database.row("leased_window", {"lease_id": lease_id})
        return None if row is None else Leased(*row)

    def _readable(self, record: Record) -> Record:
        if not record.encrypted:
            return record
        return record._replace(payload=self._cipher.decrypt(record.payload, record.transaction_id))


def _from_us(members: Members) -> int | None:
    return None if members.created is None else members.created[0]


def _until_us(members: Members) -> int | None:
    return None if members.created is None else members.created[1]


def _columns(names: Sequence[str], rows: Sequence[tuple[int, ...]]) -> dict[str, list[int]]:
    return {name: [row[n] for row in rows] for n, name in enumerate(names)}
