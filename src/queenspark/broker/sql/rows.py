"""A SELECT: a temporary job with streamed rows."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

import msgspec

from ...sql import Plan
from ...store.errors import StoreError
from ...store.job import Job, Row
from ..broker import Broker
from ..followers import Follower
from .table import plan_columns

log = logging.getLogger("queenspark.broker")

LEASE_SECONDS = 15.0
"""Lifetime of a temporary job after its reader was last seen."""

HEARTBEAT_SECONDS = 3.0
"""After this much silence an empty line is sent, so that a reader detects a lost broker."""

_STOPPING = {"error": "the broker is stopping; run the query again", "code": "unavailable"}
_RENEW_SECONDS = 2.0
_BATCH = 1000
_SHORTEST_PAUSE = 0.005
_LONGEST_PAUSE = 0.5

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


async def rows_of(
    broker: Broker, job: Job, plan: Plan, limit: int | None, seconds: float | None, gone: asyncio.Task[Any]
) -> AsyncGenerator[bytes]:
    """Stream the lines of a SELECT: its columns, then its rows, with empty keepalive lines in between.

    If it ends early, the last line is the error. The job is removed at the end.
    """
    keeping = asyncio.create_task(_keep(broker, job))
    try:
        heads = plan_columns(plan)
        yield _line({"columns": [{"name": name, "type": kind} for name, kind in heads]})
        names = None if plan.rows.whole_payload else [name for name, _ in heads]
        async with aclosing(_rows(broker, job, limit, seconds, {gone, keeping})) as batches:
            async for rows in batches:
                yield b"".join(_shown(row, names) for row in rows) or b"\n"
        if keeping.done() and not gone.done():
            yield _line(keeping.result())
    except _Stopping:
        yield _line(_STOPPING)
    finally:
        keeping.cancel()
        broker.background(_remove(broker, job))


class _Stopping(Exception):
    """The broker is shutting down."""


async def _keep(broker: Broker, job: Job) -> dict[str, str]:
    """Renew a job while its reader is connected, even a slow one; return why the job ended."""
    jobs = broker.store.jobs
    while True:
        await asyncio.sleep(_RENEW_SECONDS)
        if not await jobs.renew(job, LEASE_SECONDS):
            return {"error": "the query was stopped: its source was dropped", "code": "dropped"}
        if (error := await jobs.error(job)) is not None:
            return {"error": error, "code": "failed"}


async def _rows(
    broker: Broker, job: Job, limit: int | None, seconds: float | None, ends: set[asyncio.Task[Any]]
) -> AsyncGenerator[list[Row]]:
    """Stream rows until the limit, the timeout, the end of the source, or one of `ends`.

    Yields an empty list after a silence. Raises `_Stopping` when the broker shuts down.
    """
    deadline = math.inf if seconds is None else time.monotonic() + seconds
    left = math.inf if limit is None else limit
    after = (0, 0)
    sent = 0
    pause = _SHORTEST_PAUSE
    silent_since = time.monotonic()
    with broker.followers.following(job.queue) as follower:
        while left:
            if broker.followers.closed:
                raise _Stopping
            rows = await broker.store.jobs.rows(job, after, int(min(left, _BATCH)))
            if rows:
                after = rows[-1].txid, rows[-1].id
                left -= len(rows)
                sent += len(rows)
                yield rows
                silent_since = time.monotonic()
            elif time.monotonic() >= silent_since + HEARTBEAT_SECONDS:
                yield []
                silent_since = time.monotonic()
            rest = deadline - time.monotonic()
            if rest <= 0 or any(end.done() for end in ends):
                return
            if not rows and job.definition.runs_alone:
                whole = await broker.store.jobs.rows_at_end(job)
                if whole is not None and sent >= whole:
                    return
            if not rows:
                woken = await _wait(follower, min(pause, rest), ends)
                pause = _SHORTEST_PAUSE if woken else min(2 * pause, _LONGEST_PAUSE)


async def _wait(follower: Follower, seconds: float, ends: set[asyncio.Task[Any]]) -> bool:
    """Wait for a notification of the queue or for an end; return whether there was one."""
    news = asyncio.create_task(follower.wait(seconds))
    try:
        await asyncio.wait({news, *ends}, return_when=asyncio.FIRST_COMPLETED)
        return news.done() and news.result()
    finally:
        news.cancel()


def _shown(row: Row, names: Sequence[str] | None) -> bytes:
    """Encode a row as an array, with values as in the payload."""
    if names is None:
        return b"[" + row.payload.encode() + b"]\n"
    values = _decode(row.payload)
    return _line([values.get(name) for name in names])


def _line(value: Any) -> bytes:
    return _encode(value) + b"\n"


async def _remove(broker: Broker, job: Job) -> None:
    """Remove a temporary job now; if that fails, it expires."""
    try:
        async with broker.store.jobs.change() as change:
            await change.drop(job)
        broker.bus.forget(job.queue)
    except StoreError as error:
        log.warning("cannot remove a temporary job, it will expire: %s", error)
