"""The windows of some keys of a stream, with their state in each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

from ..formats.window_message import LANE, lanes_of
from .database import Database
from .page import Page, Rows
from .position import Position

RECENT = 5000
"""The busiest keys are those of the newest windows, this many."""

SEARCHED = 100_000
"""A search reads this many keys by name, and as many from the text on."""

MOST_GROUPS = 20
"""Maximum number of groups shown with each window."""

State = Literal["waiting", "leased", "acked", "retrying", "dead", "skipped"]


class SealedWindow(NamedTuple):
    """A message of a window queue."""

    partition_id: int
    txid: int
    id: int
    transaction_id: str
    sealed_at: datetime
    #: None for a count window.
    end: datetime | None
    payload: str

    @property
    def position(self) -> Position:
        """Its position in the log."""
        return Position(self.txid, self.id)


class GroupState(NamedTuple):
    """The state of a window in a group."""

    group: str
    state: State
    attempts: int = 0
    error: str | None = None
    lease_holder: str | None = None
    leased_at: datetime | None = None
    lease_expires_at: datetime | None = None
    available_at: datetime | None = None
    failed_at: datetime | None = None


class Timeline:
    """Reads windows by key and time. Reads are bounded by the numbers of keys, windows and groups."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keys(self, queue_id: int, page: Page, has_lanes: bool) -> Rows:
        """Return a page of the keys of a window queue: busiest first, or by name those that match a search.

        Without a search only keys of its newest windows are returned.
        """
        params = {"queue_id": queue_id, "lane": LANE if has_lanes else None}
        if page.search:
            return await self._database.page("find_stream_keys", page, searched=SEARCHED, **params)
        return await self._database.page("stream_keys", page, recent=RECENT, **params)

    async def partitions(self, queue_id: int, keys: Sequence[str], has_lanes: bool) -> list[list[int]]:
        """Return the ids of the partitions of each key."""
        names = [lanes_of(key) if has_lanes else [key] for key in keys]
        wanted = [name for own in names for name in own]
        params = {"queue_ids": [queue_id] * len(wanted), "names": wanted}
        found = {name: id_ for _, name, id_ in await self._database.rows("find_partitions", params)}
        return [[found[name] for name in own if name in found] for own in names]

    async def windows(
        self, partitions: Sequence[Sequence[int]], since: datetime, until: datetime, limit: int
    ) -> list[SealedWindow]:
        """Return the newest windows of each key that end after `since` and not after `until`.

        `partitions` has those of each key. Up to `limit` windows of each partition are read.
        """
        keys = [number for number, own in enumerate(partitions) for _ in own]
        ids = [id_ for own in partitions for id_ in own]
        params = {"keys": keys, "partition_ids": ids, "from": since, "to": until, "limit": limit}
        return [SealedWindow(*row) for row in await self._database.rows("key_windows", params)]

    async def window(self, queue_id: int, partition_id: int, transaction_id: str) -> SealedWindow | None:
        """One window."""
        params = {"queue_id": queue_id, "partition_id": partition_id, "transaction_id": transaction_id}
        row = await self._database.row("one_window", params)
        return None if row is None else SealedWindow(*row)

    async def states(
        self, queue_id: int, windows: Sequence[SealedWindow], group: str | None = None
    ) -> dict[tuple[int, int], list[GroupState]]:
        """Return the state of some windows in each group (or one), by position."""
        groups = await self._database.records(
            "timeline_groups", {"queue_id": queue_id, "group": group, "most": MOST_GROUPS}
        )
        if not groups or not windows:
            return {window.position: [] for window in windows}
        chosen = {
            "group_ids": [each["id"] for each in groups],
            "partition_ids": list({window.partition_id for window in windows}),
            "ids": [window.id for window in windows],
        }
        cursors = {
            (row["group_id"], row["partition_id"]): row
            for row in await self._database.records("timeline_places", chosen)
        }
        attempts = await self._by_message("timeline_attempts", chosen)
        dead = await self._by_message("timeline_dead", chosen)
        return {
            window.position: [
                _state(
                    each,
                    window,
                    cursors.get((each["id"], window.partition_id)),
                    attempts.get((each["id"], window.id)),
                    dead.get((each["id"], window.id)),
                )
                for each in groups
            ]
            for window in windows
        }

    async def _by_message(
        self, name: str, chosen: Mapping[str, Any]
    ) -> dict[tuple[int, int], dict[str, Any]]:
        rows = await self._database.records(name, chosen)
        return {(row["group_id"], row["id"]): row for row in rows}


def _state(
    group: dict[str, Any],
    window: SealedWindow,
    cursor: dict[str, Any] | None,
    attempt: dict[str, Any] | None,
    dead: dict[str, Any] | None,
) -> GroupState:
    name: str = group["name"]
    tried = attempt or dead
    failures: dict[str, Any] = {
        "attempts": 0 if tried is None else tried.get("count", tried.get("attempts", 0)),
        "error": None if tried is None else tried["error"],
    }
    if cursor is not None and window.id in cursor["leased"] and cursor["lease_expires_at"] > cursor["now"]:
        return GroupState(
            name,
            "leased",
            **failures,
            lease_holder=cursor["lease_holder"],
            leased_at=cursor["leased_at"],
            lease_expires_at=cursor["lease_expires_at"],
        )
    if dead is not None:
        if not dead["returned"]:
            return GroupState(name, "dead", **failures, failed_at=dead["failed_at"])
        return GroupState(name, "retrying", **failures, failed_at=dead["failed_at"])
    if cursor is not None and window.id in cursor["pending"]:
        available = cursor["available_at"]
        is_ahead = available is not None and available > cursor["now"]
        state: State = "retrying" if attempt is not None or is_ahead else "waiting"
        return GroupState(name, state, **failures, available_at=available if is_ahead else None)
    if _is_skipped(group, window, cursor):
        return GroupState(name, "skipped")
    if cursor is not None and window.position <= (cursor["end_txid"], cursor["end_id"]):
        return GroupState(name, "acked")
    return GroupState(name, "waiting")


def _is_skipped(group: dict[str, Any], window: SealedWindow, cursor: dict[str, Any] | None) -> bool:
    """Whether a window is before the position where a group started, or before the time of its last seek."""
    if window.position <= (group["start_txid"], group["start_id"]):
        return True
    until = group["skip_until"]
    if until is None or window.end is None or (cursor is not None and cursor["sought"]):
        return False
    return bool(window.end <= until)
