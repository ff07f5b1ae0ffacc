"""A SELECT: a temporary job whose rows are sent as they come."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

import msgspec

from ...sql import Plan
from ...store.errors import StoreError
from ...store.jobs import Job, Row
from ..broker import Broker
from .table import plan_columns

log = logging.getLogger("queenspark.broker")

LEASE_SECONDS = 15.0
"""How long a temporary job stays after its reader was last seen."""

_CHECK_SECONDS = 2.0
_BATCH = 1000
_SHORTEST_PAUSE = 0.005
_LONGEST_PAUSE = 0.5

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


async def rows_of(
    broker: Broker, job: Job, plan: Plan, limit: int | None, seconds: float | None, gone: asyncio.Task[Any]
) -> AsyncGenerator[bytes]:
    """The lines of a SELECT: its columns, then its rows. At the end the job is removed."""
    try:
        heads = plan_columns(plan)
        yield _line({"columns": [{"name": name, "type": kind} for name, kind in heads]})
        names = None if plan.rows.whole_payload else [name for name, _ in heads]
        async with aclosing(_Reading(broker, job, gone).lines(names, limit, seconds)) as lines:
            async for line in lines:
                yield line
    finally:
        broker.background(remove(broker, job))


class _Reading:
    """Reads the rows of a temporary job, and lets it live on meanwhile."""

    def __init__(self, broker: Broker, job: Job, gone: asyncio.Task[Any]) -> None:
        self._broker = broker
        self._job = job
        self._gone = gone
        self._checked = time.monotonic()

    async def lines(
        self, names: Sequence[str] | None, limit: int | None, seconds: float | None
    ) -> AsyncGenerator[bytes]:
        """Lines of rows until the limit, the end of the time, or the end of the job."""
        jobs = self._broker.store.jobs
        deadline = None if seconds is None else time.monotonic() + seconds
        left = limit
        after = (0, 0)
        pause = _SHORTEST_PAUSE
        with self._broker.followers.following(self._job.queue) as follower:
            while left != 0 and not self._gone.done() and not self._broker.followers.closed:
                rows = await jobs.rows(self._job, after, _BATCH if left is None else min(left, _BATCH))
                if rows:
                    after = rows[-1].txid, rows[-1].id
                    left = None if left is None else left - len(rows)
                    yield b"".join(_shown(row, names) for row in rows)
                    pause = _SHORTEST_PAUSE
                if (error := await self._trouble()) is not None:
                    yield error
                    return
                if rows:
                    continue
                if deadline is not None and (rest := deadline - time.monotonic()) < pause:
                    if rest <= 0:
                        return
                    pause = rest
                woken = await self._wait(follower.wait(pause))
                pause = _SHORTEST_PAUSE if woken else min(2 * pause, _LONGEST_PAUSE)

    async def _wait(self, news: Any) -> bool:
        """Wait for news, or for the client to leave."""
        waiting = asyncio.ensure_future(news)
        try:
            await asyncio.wait({waiting, self._gone}, return_when=asyncio.FIRST_COMPLETED)
            return waiting.done() and bool(waiting.result())
        finally:
            waiting.cancel()

    async def _trouble(self) -> bytes | None:
        """Now and then renew the job and see how it is; the last line when it is over."""
        if time.monotonic() - self._checked < _CHECK_SECONDS:
            return None
        self._checked = time.monotonic()
        jobs = self._broker.store.jobs
        if not await jobs.renew(self._job, LEASE_SECONDS):
            return _line({"error": "the query was ended: what it reads was dropped", "code": "dropped"})
        condition = (await jobs.conditions([self._job])).get(self._job.id)
        if condition is not None and condition.state == "failed":
            return _line({"error": condition.last_error, "code": "failed"})
        return None


def _shown(row: Row, names: Sequence[str] | None) -> bytes:
    """A row as an array, its values as they are in the payload."""
    if names is None:
        return b"[" + row.payload.encode() + b"]\n"
    values = _decode(row.payload)
    return _line([values.get(name) for name in names])


def _line(value: Any) -> bytes:
    return _encode(value) + b"\n"


async def remove(broker: Broker, job: Job) -> None:
    """Remove a temporary job now; should that fail, it expires."""
    try:
        async with broker.store.jobs.change() as change:
            await change.drop(job)
        broker.bus.forget(job.queue)
    except StoreError as error:
        log.warning("a temporary job could not be removed, it will expire: %s", error)
