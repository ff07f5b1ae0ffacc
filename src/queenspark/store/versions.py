"""Versions of streams and jobs: the start of each, and the handover to the next."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from psycopg import AsyncConnection

from ..windows.membership import OVER, handover
from .definitions import Body, Cut, Definition, Repeats, Source, spec_of, to_definitions
from .queries import query

Connection = AsyncConnection[tuple[Any, ...]]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Versions:
    """Writes definitions over some source queues, under the lock of the definitions."""

    def __init__(self, connection: Connection, queue_ids: dict[str, int]) -> None:
        self._connection = connection
        self._queue_ids = queue_ids

    async def begin(self, start: str, frontier: int | None = None) -> tuple[Source, ...]:
        """Return the sources starting at `earliest`, `latest` or an ISO time."""
        if start == "earliest":
            return tuple(Source(id_, name, 0, 0) for name, id_ in self._queue_ids.items())
        if start == "latest":
            return await self.at(None, frontier)
        return await self.at(to_us(start), frontier)

    async def kept(self, before: tuple[Source, ...]) -> tuple[Source, ...]:
        """Return the sources with their current positions; added ones start now."""
        known = {source.queue_id: source for source in before}
        added = await self.at(None)
        return tuple(known.get(source.queue_id, source) for source in added)

    async def at(self, time_us: int | None, frontier: int | None = None) -> tuple[Source, ...]:
        """Return the sources starting at the first record since a time, or at a frontier (default: now)."""
        if frontier is None:
            _, frontier = await self.now()
        found = []
        for name, id_ in self._queue_ids.items():
            position = (frontier, 0)
            if time_us is not None:
                txid, number = await self.row("position_at", queue_id=id_, time_us=time_us) or position
                position = (int(txid), int(number))
            found.append(Source(id_, name, *position))
        return tuple(found)

    async def now(self) -> tuple[int, int]:
        """Return the time in microseconds, and the frontier of the log."""
        now_us, frontier = await self.row("now_us") or (0, 0)
        return int(now_us), int(frontier)

    async def take_over(self, stream_id: int, version: int, old: Body, new: Body) -> None:
        """End a version at a boundary of its windows, and start the next one there."""
        now_us, frontier = await self.now()
        plan = handover(spec_of(old), spec_of(new), now_us)
        # One frontier for both versions, so that no concurrent push falls between the two.
        sources = await self.at(plan.reads_from_us, frontier)
        until = Cut(frontier, 0) if plan.by_position else old.until
        ended = msgspec.structs.replace(old, until_us=plan.until_us, until=until)
        begun = msgspec.structs.replace(new, sources=sources, from_us=plan.from_us)
        await self.add(stream_id, version - 1, ended)
        await self.add(stream_id, version, begun)

    async def cut_over(
        self, stream_id: int, version: int, old: Body, new: Body, failed_at: Cut | None = None
    ) -> None:
        """End a version at the current frontier, or at its failure; the next one emits from there on.

        The next version reads from its own start, so that it has the state of all records when it starts
        emitting.
        """
        now_us, frontier = await self.now()
        until = emits_after = failed_at or Cut(frontier, 0)
        repeats = None
        if failed_at is not None:
            # A version that failed before its first output has not emitted the range of its predecessor.
            emits_after = max(failed_at, old.emits_after or failed_at, key=lambda cut: (cut.txid, cut.id))
            known = old.repeats or Repeats(0, 0, 0, first=version - 1, after=emits_after.txid)
            repeats = msgspec.structs.replace(known, txid=frontier, us=now_us)
        begun = msgspec.structs.replace(
            new, sources=await self.begin(new.start, frontier), emits_after=emits_after, repeats=repeats
        )
        await self.add(stream_id, version - 1, msgspec.structs.replace(old, until=until))
        await self.add(stream_id, version, begun)

    async def live(self, stream_id: int) -> list[Definition]:
        """Return the current versions of a stream with pending output."""
        rows = await self._connection.execute(query("stream_definitions"), {"stream_id": stream_id})
        return [
            definition
            for definition in to_definitions(await rows.fetchall())
            if definition.body.until_us != OVER
        ]

    async def add(self, stream_id: int, version: int, body: Body) -> None:
        """Append to the definition log."""
        text = msgspec.json.encode(body).decode()
        kept = {"body": text, "computing": None} if body.query is None else {"body": None, "computing": text}
        await self.row("add_definition", stream_id=stream_id, version=version, **kept)

    async def row(self, statement: str, /, **params: Any) -> tuple[Any, ...] | None:
        """Run a named statement and return its first row."""
        return await (await self._connection.execute(query(statement), params)).fetchone()


def to_us(time: str) -> int:
    """Parse an ISO time to microseconds since 1970; UTC without a zone."""
    found = datetime.fromisoformat(time)
    return ((found if found.tzinfo else found.replace(tzinfo=UTC)) - _EPOCH) // timedelta(microseconds=1)
