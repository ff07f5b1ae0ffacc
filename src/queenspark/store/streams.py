"""Streams: define, redefine, reset, delete, seek, and inspect."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from ..formats.definition import shape
from ..formats.window_message import LANE
from ..windows.membership import OVER, aligned
from .catalog import Catalog
from .database import Database
from .definitions import (
    STREAMS_QUERY,
    WINDOW_QUEUES,
    Body,
    Definition,
    Source,
    job_name,
    spec_of,
    to_definitions,
    window_queue,
)
from .errors import Refused
from .page import Page
from .queries import query
from .versions import Connection, Versions

_MOST_COUNTED = 10_000  # acked windows per key
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Stream(msgspec.Struct, frozen=True, gc=False):
    """A stream as stored; `queue` is its window queue."""

    id: int
    namespace: str
    name: str
    queue_id: int
    queue: str
    partitioned: bool
    lease_timeout_ms: int
    version: int
    created_at: datetime
    updated_at: datetime
    window_retention_ms: int | None  # None: no limit


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The desired form of a stream. `spec` is a WindowSpec as JSON; `start` is for new ones and resets."""

    namespace: str
    name: str
    queues: tuple[str, ...]
    partitioned: bool
    spec: dict[str, Any]
    event_time: str | None
    lease_timeout_ms: int
    ordered: bool = True
    window_retention_ms: int | None = None
    start: str | None = None
    reset: bool = False
    #: Its computation, as in Body.
    query: dict[str, Any] | None = None
    columns: dict[str, str] = {}
    key: tuple[str, ...] = ()
    where: str | None = None
    aggregates: dict[str, str] = {}
    having: str | None = None


class Streams:
    """The streams of the database."""

    def __init__(self, database: Database, catalog: Catalog) -> None:
        self._database = database
        self._catalog = catalog
        self._by_name: dict[str, list[Stream]] = {}
        self._bodies: dict[tuple[int, int], Body] = {}
        self._lanes: dict[tuple[int, int], bool] = {}
        self._reading = asyncio.Lock()

    async def define(self, wanted: Wanted) -> Stream:
        """Create or redefine a stream, within its version if possible."""
        async with self._database.connection() as connection, connection.transaction():
            await connection.execute(query("lock_definitions"))
            change = _Change(connection, wanted, await _queue_ids(connection, wanted.queues))
            stream = await self._locked(connection, wanted.namespace, wanted.name)
            if stream is None:
                await change.create()
            else:
                rows = await connection.execute(
                    query("definition"), {"stream_id": stream.id, "version": stream.version}
                )
                await change.apply(stream, to_definitions(await rows.fetchall())[0])
            stream = await self._locked(connection, wanted.namespace, wanted.name)
        assert stream is not None
        self.forget()
        return stream

    async def delete(self, stream: Stream) -> bool:
        """Delete a stream with its windows and groups; return whether it existed."""
        async with self._database.connection() as connection, connection.transaction():
            await connection.execute(query("lock_definitions"))
            if await self._locked(connection, stream.namespace, stream.name) is None:
                return False
            await connection.execute(query("end_definitions"), {"stream_id": stream.id})
            await connection.execute(query("delete_queue"), {"name": stream.queue})
            await connection.execute(query("forget_stream"), {"id": stream.id})
        self._catalog.forget(stream.queue)
        self.forget()
        return True

    async def named(self, name: str) -> list[Stream]:
        """Return the streams of this name, at most one per namespace."""
        known = self._by_name.get(name)
        if known is None:
            known = await self.find(name)
            if known:
                self._by_name[name] = known
        return known

    async def find(self, name: str | None = None, namespace: str | None = None) -> list[Stream]:
        """Return all streams (of a name, of a namespace)."""
        params = {"name": name, "namespace": namespace}
        return [Stream(**record) for record in await self._database.records("find_stream", params)]

    async def body(self, stream_id: int, version: int) -> Body | None:
        """Return the definition of a version; shape and clock never change within it."""
        if (known := self._bodies.get((stream_id, version))) is not None:
            return known
        async with self._reading:  # concurrent lookups share one query
            known = self._bodies.get((stream_id, version))
            if known is None:
                params = {"stream_id": stream_id, "version": version}
                rows = await self._database.rows("definition", params)
                if not rows:
                    return None
                known = self._bodies[stream_id, version] = to_definitions(rows)[0].body
        return known

    async def versions(self, stream: Stream) -> list[tuple[int, Body, datetime]]:
        """Return the versions of a stream with their start time, newest first."""
        rows = await self._database.rows("stream_versions", {"stream_id": stream.id})
        return [(version, msgspec.convert(body, Body), at) for version, body, at in rows if body is not None]

    async def has_lanes(self, stream: Stream) -> bool:
        """Whether any version of a stream is unordered, so that a key may have several partitions."""
        known = self._lanes.get((stream.id, stream.version))
        if known is None:
            known = any(not body.ordered for _, body, _ in await self.versions(stream))
            self._lanes[stream.id, stream.version] = known
        return known

    async def page(self, page: Page, namespace: str | None = None) -> tuple[list[Stream], int]:
        """Return a page of the streams (of a namespace), and the total."""
        rows, total = await self._database.page("list_streams", page, namespace=namespace)
        return [Stream(**row) for row in rows], total

    async def state(self, stream_ids: list[int] | None = None) -> list[dict[str, Any]]:
        """Return the pipeline's report on each stream, its lag, and the retention held for it."""
        return await self._database.records("stream_state", {"ids": stream_ids})

    async def buckets(self) -> list[dict[str, Any]]:
        """Return the totals of each bucket of the pipeline, and its last batch."""
        return await self._database.records("bucket_state")

    async def totals(self) -> dict[str, Any]:
        """Return the number of groups and live leases over all streams."""
        return (await self._database.records("stream_group_totals"))[0]

    async def consumers(self, stream: Stream, page: Page) -> list[dict[str, Any]]:
        """Return the keys of each group of a stream, with the last acked window; counts up to 10,000."""
        lane = LANE if await self.has_lanes(stream) else None
        params = {"queue_id": stream.queue_id, "lane": lane, "most": _MOST_COUNTED, **page.params()}
        return await self._database.records("stream_consumers", params)

    async def active_windows(
        self, stream: Stream, group: str | None, state: str | None, limit: int, offset: int
    ) -> list[dict[str, Any]]:
        """Return windows that the groups of a stream (or one of them) have not acked, with their state."""
        params = {"queue_id": stream.queue_id, "group": group, "state": state}
        return await self._database.records("active_windows", {**params, "limit": limit, "offset": offset})

    async def late(self, stream: Stream, limit: int = 100, offset: int = 0) -> list[dict[str, Any]]:
        """Return late records, newest first."""
        return await self._records("list_late", stream, limit, offset)

    async def dead(self, stream: Stream, limit: int = 100, offset: int = 0) -> list[dict[str, Any]]:
        """Return records and windows that could not be read or computed, newest first."""
        return await self._records("list_dead", stream, limit, offset)

    async def last_error(self, stream: Stream) -> str | None:
        """Return why a stream that computes has stopped; None while it runs."""
        rows = await self._database.records("job_troubles", {"ids": [stream.id]})
        return rows[0]["error"] if rows else None

    async def troubles(self, stream_ids: list[int]) -> dict[int, str]:
        """Return why some streams have stopped, by id; running ones are skipped."""
        rows = await self._database.records("job_troubles", {"ids": stream_ids})
        return {row["id"]: row["error"] for row in rows if row["error"] is not None}

    async def rates(self, stream_ids: list[int] | None = None) -> list[dict[str, Any]]:
        """Return the rates of each stream over the last minute, as measured by the pipeline."""
        return await self._database.records("stream_rates", {"ids": stream_ids})

    async def pipeline(self) -> dict[str, Any]:
        """Return the leader and the reports of its queries by name: holder, epoch, active, queries."""
        found = (await self._database.records("pipeline_state"))[0]
        queries = found.pop("stats")
        # Pipelines of version 0.1 have one query, named `query`.
        former = queries.pop("query", None)
        if former is not None:
            queries.setdefault(STREAMS_QUERY, former)
        return {**found, "queries": queries}

    async def is_led(self) -> bool:
        """Whether a pipeline is leading."""
        row = await self._database.row("is_led")
        assert row is not None
        return bool(row[0])

    async def _records(self, name: str, stream: Stream, limit: int, offset: int) -> list[dict[str, Any]]:
        body = await self.body(stream.id, stream.version)
        queue_ids = [source.queue_id for source in body.sources] if body is not None else []
        params = {"id": stream.id, "queue_ids": queue_ids, "limit": limit, "offset": offset}
        return await self._database.records(name, params)

    async def seek(self, stream: Stream, group: str, time: datetime) -> None:
        """Move a group to the first window of each key that ends after a time.

        For windows on a grid, the time is first aligned down to it. Leases are revoked, older acks rejected.
        The group is created if needed.
        """
        body = await self.body(stream.id, stream.version)
        time_us = (time - _EPOCH) // timedelta(microseconds=1)
        if body is not None:
            time_us = aligned(spec_of(body), time_us)
        self._catalog.forget(stream.queue)
        queue = await self._catalog.queue(stream.queue)
        if queue is None:
            return
        params = {"group_id": await self._catalog.group_id(queue, group), "time_us": time_us}
        await self._database.rows("seek_windows", params)

    def forget(self, queue: str | None = None) -> None:
        """Invalidate the cache of the stream of a window queue, or of all."""
        if queue is None or queue.startswith(WINDOW_QUEUES):
            self._by_name.clear()
            self._bodies.clear()
            self._lanes.clear()

    async def _locked(self, connection: Connection, namespace: str, name: str) -> Stream | None:
        rows = await connection.execute(query("find_stream"), {"namespace": namespace, "name": name})
        row = await rows.fetchone()
        return None if row is None else Stream(*row)


class _Change:
    """One call of define, under the lock of the definitions."""

    def __init__(self, connection: Connection, wanted: Wanted, queue_ids: dict[str, int]) -> None:
        self._connection = connection
        self._wanted = wanted
        self._versions = Versions(connection, queue_ids)
        #: Options of the window queue, in whole seconds.
        self._options = {
            "lease_seconds": -(-wanted.lease_timeout_ms // 1000),
            "retention_enabled": wanted.window_retention_ms is not None,
            "retention_seconds": -(-(wanted.window_retention_ms or 0) // 1000),
        }

    async def create(self) -> None:
        wanted, versions = self._wanted, self._versions
        namespace, name = wanted.namespace, wanted.name
        if await versions.row("find_job", namespace=namespace, name=name, temporary=False):
            raise Refused(
                f"the job {job_name(namespace, name)} already exists; choose another name for the stream"
            )
        queue = window_queue(wanted.namespace, wanted.name)
        row = await versions.row("add_window_queue", name=queue, **self._options)
        if row is None:
            raise Refused(
                f"the window queue {queue} already exists, but belongs to no stream: delete it first"
            )
        (stream_id,) = await versions.row(
            "add_stream", namespace=wanted.namespace, name=wanted.name, queue_id=row[0],
            partitioned=wanted.partitioned, lease_timeout_ms=wanted.lease_timeout_ms,
            window_retention_ms=wanted.window_retention_ms,
        ) or (0,)  # fmt: skip
        start = wanted.start or "earliest"
        await versions.add(stream_id, 1, self._body(await versions.begin(start), start))

    async def apply(self, stream: Stream, current: Definition) -> None:
        """Redefine an existing stream."""
        version = stream.version
        body = self._body(await self._versions.kept(current.body.sources), current.body.start)
        if self._wanted.reset:
            version += 1
            await self._reset(stream.id, version, current.body)
        elif shape(body.spec, body) != shape(current.body.spec, current.body):
            version += 1
            new = self._body((), current.body.start)
            await self._versions.take_over(stream.id, version, current.body, new)
        else:
            body = msgspec.structs.replace(
                body, from_us=current.body.from_us, query=_within(current.body.query, body.query)
            )
            # Retry a failed stream: the pipeline notices a new seq, even with the same body.
            params = {"stream_id": stream.id, "version": None}
            failed = await self._connection.execute(query("forget_failures"), params)
            if body != current.body or failed.rowcount > 0:
                await self._versions.add(stream.id, version, body)
        wanted = self._wanted
        await self._connection.execute(
            query("change_stream"),
            {
                "id": stream.id,
                "partitioned": wanted.partitioned,
                "lease_timeout_ms": wanted.lease_timeout_ms,
                "window_retention_ms": wanted.window_retention_ms,
                "version": version,
            },
        )
        await self._connection.execute(
            query("change_window_queue"), {"queue_id": stream.queue_id, **self._options}
        )

    async def _reset(self, stream_id: int, version: int, old: Body) -> None:
        """Start over: earlier versions emit nothing more."""
        for definition in await self._versions.live(stream_id):
            ended = msgspec.structs.replace(definition.body, until_us=OVER)
            await self._versions.add(stream_id, definition.version, ended)
        start = self._wanted.start or old.start
        await self._versions.add(stream_id, version, self._body(await self._versions.begin(start), start))

    def _body(self, sources: tuple[Source, ...], start: str) -> Body:
        wanted = self._wanted
        return Body(
            name=wanted.name, namespace=wanted.namespace, partitioned=wanted.partitioned, spec=wanted.spec,
            event_time=wanted.event_time, ordered=wanted.ordered, sources=sources, start=start,
            query=wanted.query, columns=wanted.columns, key=wanted.key,
            where=wanted.where, aggregates=wanted.aggregates, having=wanted.having,
        )  # fmt: skip


def _within(old: dict[str, Any] | None, new: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a query changed within its version: the types of its messages stay."""
    return new if old is None or new is None else {**new, "relation": old["relation"]}


async def _queue_ids(connection: Connection, names: tuple[str, ...]) -> dict[str, int]:
    """Return the ids of source queues by name, in the given order; raises Refused."""
    rows = await connection.execute(query("queue_ids"), {"names": list(names)})
    found = {str(name): int(id_) for name, id_ in await rows.fetchall()}
    check_sources(names, found)
    return {name: found[name] for name in names}


def check_sources(names: Sequence[str], found: Collection[str]) -> None:
    """Reject source queues that do not exist."""
    if missing := [name for name in dict.fromkeys(names) if name not in found]:
        raise Refused(
            f"source_queue_names: {', '.join(missing)} {'does' if len(missing) == 1 else 'do'} not exist;"
            " create it with a push or with /api/v1/configure"
        )
