"""The standing of a stream or job: the pipeline's progress for it, and anything that may hold it up."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from psycopg.rows import dict_row

from ..windows.membership import OVER
from .database import Database
from .definitions import STREAMS_QUERY, Definition, job_query_name, to_definitions
from .position import Position
from .progress import ReadPoint, name_of
from .queries import query
from .versions import Connection

MOST_COUNTED = 10_000
"""Unread messages of a source are counted up to this many."""


class Leader(msgspec.Struct, frozen=True, kw_only=True):
    """The pipeline that leads, or led last."""

    is_leading: bool
    holder: str | None
    #: None: it resigned, or none has ever led.
    led_until: datetime | None
    epoch: int
    #: Time of the last write of a pipeline.
    heard_at: datetime | None
    #: Its report on the streams query.
    report: dict[str, Any]


class SourceStanding(msgspec.Struct, frozen=True):
    """A source queue, and its unread messages."""

    queue: str
    is_there: bool
    has_messages: bool
    unread: int
    unread_since: datetime | None
    #: Committed messages that are not final because of an open transaction.
    hidden: int


class Output(msgspec.Struct, frozen=True):
    """The output queue of a stream or job, and the reasons that keep it from growing."""

    newest_at: datetime | None
    paused_since: datetime | None
    error: str | None
    failed_at: datetime | None
    queue_id: int
    queue: str
    max_size: int
    #: Messages waiting to be consumed; counted only if `max_size` limits them.
    backlog: int = 0


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """The standing of one version of a stream: the oldest with open windows, or else the newest."""

    now: datetime
    definition: Definition
    leader: Leader
    safe_time: datetime | None
    #: Whether the pipeline has loaded this definition.
    is_known: bool
    #: Whether it has its own position, behind that of other streams.
    is_behind: bool
    #: The pipeline's position, with the safe time known there; None before its first batch.
    read_point: ReadPoint | None
    sources: list[SourceStanding]
    output: Output
    open_windows: int
    first_open: Position | None
    records: int
    windows: int
    dead: int
    watermark_us: int | None
    #: For a job with its own query: its read progress, and when it finished.
    run: dict[str, Any] = {}


class Standings:
    """Reads the standing of streams."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, stream_id: int) -> Standing | None:
        """Return the standing of a stream or job; None if it is gone."""
        async with self._database.snapshot() as connection:
            return await _Reader(connection, stream_id).read()


class _Reader:
    """Reads one standing, in one snapshot."""

    def __init__(self, connection: Connection, stream_id: int) -> None:
        self._connection = connection
        self._stream_id = stream_id

    async def read(self) -> Standing | None:
        rows = await self._connection.execute(query("stream_definitions"), {"stream_id": self._stream_id})
        versions = [each for each in to_definitions(await rows.fetchall()) if each.body.until_us != OVER]
        if not versions:
            return None
        totals = {row["version"]: row for row in await self._records("version_totals")}
        definition = _choose(versions, totals)
        mine = totals.get(definition.version, {})
        name = name_of((self._stream_id, definition.version))
        if definition.body.runs_alone:
            own = job_query_name(self._stream_id, definition.version)
            (found,) = await self._records("job_standing", version=definition.version, query=own)
        else:
            (found,) = await self._records("standing", stream=name, query=STREAMS_QUERY)
        read_point: ReadPoint | None = tuple(found["read_point"]) if found["known_seq"] is not None else None
        if read_point is not None and isinstance(position := found.get("position"), str):
            read_point = (*Position.parse(position), read_point[2])  # it reads queues
        output = await self._output(definition)
        if output is None:
            return None
        return Standing(
            now=found["now"],
            definition=definition,
            leader=Leader(
                is_leading=found["is_led"],
                holder=found["holder"],
                led_until=found["led_until"],
                epoch=found["epoch"],
                heard_at=found["heard_at"],
                report=found["report"] or {},
            ),
            safe_time=found["safe_time"],
            is_known=(found["known_seq"] or 0) >= definition.seq,
            is_behind=bool(found["is_behind"]),
            read_point=read_point,
            sources=await self._sources(definition, read_point),
            output=output,
            open_windows=mine.get("open_windows", 0),
            first_open=None if mine.get("first_open") is None else Position(*mine["first_open"]),
            records=sum(row["records"] for row in totals.values()),
            windows=sum(row["windows"] for row in totals.values()),
            dead=sum(row["dead"] for row in totals.values()),
            watermark_us=mine.get("watermark_us"),
            run=found.get("run") or {},
        )

    async def _sources(self, definition: Definition, read_point: ReadPoint | None) -> list[SourceStanding]:
        sources = definition.body.sources
        read = Position(0, 0) if read_point is None else Position(*read_point[:2])
        after = [max(read, Position(source.txid, source.id)) for source in sources]
        rows = await self._records(
            "source_standing",
            queue_ids=[source.queue_id for source in sources],
            txids=[position.txid for position in after],
            ids=[position.id for position in after],
            most=MOST_COUNTED,
        )
        found = {row.pop("queue_id"): row for row in rows}
        return [SourceStanding(queue=source.queue, **found[source.queue_id]) for source in sources]

    async def _output(self, definition: Definition) -> Output | None:
        rows = await self._records("output_standing", version=definition.version)
        if not rows:
            return None
        output = Output(**rows[0])
        if definition.body.query is None or not output.max_size:
            return output
        params = {"queue_id": output.queue_id, "limit": output.max_size}
        counted = await self._connection.execute(query("backlog"), params)
        (backlog,) = await counted.fetchone() or (0,)
        return msgspec.structs.replace(output, backlog=backlog)

    async def _records(self, name: str, /, **params: Any) -> list[dict[str, Any]]:
        async with self._connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(query(name), {"stream_id": self._stream_id, **params})
            return await cursor.fetchall()


def _choose(versions: list[Definition], totals: dict[int, dict[str, Any]]) -> Definition:
    """Prefer a replaced version: it emits its last windows before those of the next one."""
    for definition in versions[:-1]:
        if totals.get(definition.version, {}).get("open_windows"):
            return definition
    return versions[-1]
