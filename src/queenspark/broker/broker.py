"""The broker: the store and all background work of one process."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Awaitable, Callable, Set
from datetime import UTC, datetime
from typing import Any

from .. import __version__
from ..settings import Settings, decode_key
from ..sql import SqlError
from ..store.definitions import STREAMS_QUERY
from ..store.delivery import Batch
from ..store.errors import QueueFull, Refused, StoreError
from ..store.maintenance import Modes
from ..store.page import Page
from ..store.samples import STEP_SECONDS
from ..store.store import Store
from .access import Gate
from .access.denials import Denial, Denials
from .access.known_keys import REFRESH_SECONDS
from .activity import Activity
from .bus import Bus
from .errors import ApiError
from .followers import Followers
from .gather import Gatherer
from .http import Call, Forbidden, Route
from .http.response import Pairs
from .leases import Leases
from .metrics import Metrics
from .parking import Parking
from .result_cache import ResultCache
from .sampling import Sampling
from .times import iso

log = logging.getLogger("queenspark.broker")

_STOP_SECONDS = 5.0  # for background work to end
_LANES = 2  # concurrent statements per gatherer, except pushes
_MOST_PUSHED = 4000  # items per gathered insert; a larger request goes alone
_MOST_ACKED = 1000
_MOST_WINDOWS = 64
_LARGE_READS = 4  # concurrent large window reads; others need connections too
_FALLBACK_SECONDS = 2.0  # poll interval of parked polls without a notification
_VACUUM_SECONDS = 5.0
_EXPIRY_SECONDS = 1.0  # between checks for abandoned temporary jobs
_AUDIT_SECONDS = 600.0
_DENIALS_SECONDS = 60.0
_SHARE = 20  # idle background work uses at most 1/20 of wall time,
_LONGEST_PAUSE = 10  # but runs at least every 10 intervals


class Broker:
    """State shared by all endpoints."""

    def __init__(self, settings: Settings) -> None:
        assert settings.database_url is not None
        self.settings = settings
        self.started = time.time()
        self.store = Store(
            settings.database_url,
            pool_size=settings.pool_size,
            encryption_key=decode_key(settings.encryption_key) if settings.encryption_key else None,
            retention_batch=settings.retention_batch,
            stream_hold_seconds=settings.stream_hold_seconds,
        )
        self.metrics = Metrics()
        self.metrics.pool_size.set(settings.pool_size)
        self.sampling = Sampling(self.metrics)
        self.activity = Activity(self.store.catalog.names_of)
        self.name = f"{socket.gethostname()}:{settings.port}:{os.getpid()}"
        self.cache = ResultCache()
        self.leases = Leases()
        self.parking = Parking(self.give_back, self._in_scope)
        self.pushes = Gatherer(self.store.pusher.push, settings.push_lanes, _MOST_PUSHED)
        self.appender = self.store.appender(
            push=self.pushes.run, is_staging=self._is_staging, wake=self._wake_queues
        )
        self.acks = Gatherer(self.store.deliverer.ack, _LANES, _MOST_ACKED)
        self.window_pops = Gatherer(self.store.deliverer.pop_windows, _LANES, _MOST_WINDOWS)
        self.window_reads = Gatherer(self.store.hydration.read, _LANES, _MOST_WINDOWS)
        self.large_reads = asyncio.Semaphore(_LARGE_READS)
        self.followers = Followers()
        self.bus = Bus(self.store.database, self._woken, self.store.forget)
        self.bus.on_modes = self._modes_changed
        #: Checks callers; None when access control is off.
        self.gate = Gate(settings, self.store) if settings.is_closed else None
        if self.gate is not None:
            self.bus.on_keys = self.gate.keys.forget
        self._denials = Denials()
        self.modes = Modes(push=False, pop=False)
        #: Whether a pipeline is leading, read every few seconds; None before the first read.
        self.is_led: bool | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._stopping = False

    async def start(self) -> None:
        """Connect and start background work."""
        await self.store.open()
        self.modes = await self.store.maintenance.modes()
        self.bus.start()
        settings = self.settings
        self._every(settings.look_seconds, self._sample_clock)
        self._every(settings.retention_interval_seconds, self._sweep)
        self._every(settings.stats_interval_seconds, self._count)
        self._every(settings.stats_interval_seconds, self.measure)
        self._every(_FALLBACK_SECONDS, self._fall_back)
        self._every(_VACUUM_SECONDS, self.store.sweeper.vacuum_places)
        self._every(_EXPIRY_SECONDS, self._expire_jobs)
        self._every(_AUDIT_SECONDS, self._forget_audit)
        if self.gate is not None:
            self._every(_DENIALS_SECONDS, self._note_repeated_denials)
            self._every(REFRESH_SECONDS, self._refresh_keys)
            if self.gate.tokens is not None:
                self.background(self.gate.tokens.keys.keep_reading())
        self._every(STEP_SECONDS, self._sample)
        self._every(STEP_SECONDS, self._note_rates)

    async def stop(self) -> None:
        """Stop background work and disconnect."""
        self._stopping = True
        await self.bus.stop()
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_STOP_SECONDS)
        await self.store.close()

    def background(self, work: Awaitable[Any]) -> None:
        """Run a task without waiting for it."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def give_back(self, *batches: Batch) -> None:
        """Release leases of clients that disconnected."""
        for batch in batches:
            try:
                if await self.store.deliverer.release(batch.lease_id):
                    self.bus.wake(batch.queue.name)
            except StoreError as error:
                log.warning("cannot release lease %s, it will expire: %s", batch.lease_id, error)

    async def note_act(self, call: Call, route: Route, status: int) -> None:
        """Record an administrative act in the audit log."""
        caller = call.caller
        subject = call.acted_on or ", ".join(call.path.values()) or None
        await self._note(
            caller.name, caller.kind, call.origin, f"{route.method} {route.path}", subject, status
        )

    async def note_denial(self, call: Call, route: Route, denied: Forbidden) -> None:
        """Record a denied administrative act in the audit log; repetitions only as a count, once an hour."""
        if not denied.right.is_administrative:
            return
        denial = Denial(denied.caller.name, denied.caller.kind, f"{route.method} {route.path}")
        if self._denials.is_first(denial, call.origin):
            names = ", ".join(call.path.values()) or None
            await self._note(denial.caller, denial.kind, call.origin, denial.action, names, denied.status)

    async def _note_repeated_denials(self) -> None:
        for denial, origin, count in self._denials.repeated():
            subject = f"{count} more within an hour"
            await self._note(denial.caller, denial.kind, origin, denial.action, subject, 403)

    async def _note(
        self, caller: str, kind: str, origin: str, action: str, subject: str | None, status: int
    ) -> None:
        try:
            await self.store.audit.note(caller, kind, origin, action, subject, status)
        except StoreError as error:
            # The response does not change; only the log can record it now.
            log.error(
                "cannot write to the audit log: %s %s %s from %s, status %d: %s",
                caller, action, subject, origin, status, error,
            )  # fmt: skip

    def translate(self, error: BaseException) -> ApiError | None:
        """Map a store error to an HTTP error."""
        match error:
            case QueueFull():
                return ApiError(429, str(error), retry_after=1)
            case SqlError():
                return ApiError(400, error.message, "sql_error", at=(error.line, error.column))
            case Refused():
                return ApiError(400, str(error))
            case StoreError():
                return ApiError(503, str(error), retry_after=1)
            case _:
                return None

    def _every(self, seconds: float, work: Callable[[], Awaitable[bool | None]]) -> None:
        """Run periodically: less often while it takes long, unless it reports useful work.

        A failure does not add a pause: its duration reflects the load of others, not the cost of the work.
        """

        async def loop() -> None:
            while not self._stopping:
                pause = seconds
                begun = time.monotonic()
                try:
                    if not await work():
                        took = time.monotonic() - begun
                        pause = max(seconds, min(_SHARE * took, _LONGEST_PAUSE * seconds))
                except StoreError as error:
                    log.warning("%s", error)
                except Exception:
                    log.exception("background task failed")
                await asyncio.sleep(pause)

        self.background(loop())

    def _in_scope(self, name: str, scope: tuple[str | None, str | None]) -> bool:
        """Whether a queue belongs to a namespace or task; unknown queues may."""
        queue = self.store.catalog.queues.get(name)
        namespace, task = scope
        return queue is None or (namespace in (None, queue.namespace) and task in (None, queue.task))

    def _woken(self, queue: str | None) -> None:
        self.parking.wake(queue)
        self.followers.wake(queue)

    async def _is_staging(self) -> bool:
        return self.modes.push

    async def _wake_queues(self, names: Set[str]) -> None:
        for name in names:
            self.bus.wake(name)

    def _modes_changed(self) -> None:
        async def read() -> None:
            try:
                self.modes = await self.store.maintenance.modes()
            except StoreError as error:
                log.warning("cannot read the maintenance modes: %s", error)

        self.background(read())

    async def _sample_clock(self) -> bool:
        await self.store.clock.sample(self.settings.look_seconds)
        return True

    async def _sweep(self) -> bool:
        removed = await self.store.sweeper.run()
        if removed:
            self.metrics.removed.inc(removed)
            log.info("retention removed %d messages", removed)
        return removed > 0

    async def _sample(self) -> bool:
        address = f"{self.settings.host}:{self.settings.port}"
        await self.store.samples.note_process(self.name, __version__, address)
        await self.store.samples.note(self.name, self.sampling.take())
        await self.store.samples.forget()
        return True

    async def _note_rates(self) -> None:
        await self.store.rates.note(self.name, await self.activity.rates())

    async def _expire_jobs(self) -> None:
        for queue in await self.store.jobs.expire():
            self.bus.forget(queue)

    async def _refresh_keys(self) -> bool:
        if self.gate is not None:
            await self.gate.keys.refresh()
        return True

    async def _forget_audit(self) -> None:
        await self.store.audit.forget(self.settings.audit_retention_days * 86400)

    async def _count(self) -> bool:
        """Update the counts of the log; with a large backlog, up to half of the time."""
        complete = await self.store.counts.run(0.9 * self.settings.stats_interval_seconds)
        behind = complete is False
        while complete is False:
            await asyncio.sleep((await self.store.counts.freshness()).seconds)
            complete = await self.store.counts.run()
        return behind

    async def counted_at(self) -> str | None:
        """The time of the counts; None while counting has not caught up with the log."""
        found = await self.store.counts.refresh()
        return iso(found.at) if found.complete else None

    async def totals(self) -> dict[str, Any]:
        """Totals and the time of the counts, at most a second old."""

        async def read() -> dict[str, Any]:
            counted_at = await self.counted_at()
            return {**await self.store.counts.totals(), "countedAt": counted_at}

        found: dict[str, Any] = await self.cache.get("totals", read)
        return found

    async def _fall_back(self) -> None:
        """Wake parked polls whose notification was lost; read the modes and the leader again."""
        changed = await self.store.clock.changed_queues(self.parking.queues())
        for queue in changed:
            self.parking.wake(queue)
        self.parking.wake_scopes()
        self.modes = await self.store.maintenance.modes()
        self.is_led = await self.store.streams.is_led()

    def pipeline_header(self) -> Pairs:
        """The response header for clients that wait for the pipeline: whether one is leading."""
        if self.is_led is None:
            return ()
        return ((b"queenspark-pipeline", b"leading" if self.is_led else b"none"),)

    async def measure(self) -> None:
        """Refresh the gauges that need a query."""
        metrics = self.metrics
        now = datetime.now(UTC)
        groups, _ = await self.store.groups.page(Page(sort="lag", descending=True))
        totals = await self.store.counts.totals()
        counts = await self.store.counts.freshness()
        safe_time = await self.store.clock.safe_time()
        holder = await self.store.clock.holder()
        for gauge in (metrics.lag, metrics.oldest, metrics.dead_letters, metrics.horizon_held):
            gauge.clear()
        for row in groups:
            labels = (row["queue"], row["name"])
            metrics.lag.labels(*labels).set(row["lag"])
            age = (now - row["oldest"]).total_seconds() if row["oldest"] is not None and row["lag"] else 0
            metrics.oldest.labels(*labels).set(max(0.0, age))
            if row["dead_letters"]:
                metrics.dead_letters.labels(*labels).set(row["dead_letters"])
        metrics.messages.set(totals["messages"])
        metrics.pending.set(totals["pending"])
        metrics.counts_age.set(counts.age if counts.at is not None else 0)
        if safe_time is not None:
            metrics.safe_time.set(safe_time.timestamp())
            metrics.safe_time_lag.set(max(0.0, (now - safe_time).total_seconds()))
        if holder is not None:
            held_by = (str(holder["pid"]), holder["application"], holder["state"])
            metrics.horizon_held.labels(*held_by).set(holder["seconds"] or 0)
        await self._measure_streams()
        await self._measure_jobs()

    async def _measure_streams(self) -> None:
        streams = self.store.streams
        pipeline = await streams.pipeline()
        queries = pipeline["queries"] if pipeline["active"] else {}
        query = queries.get(STREAMS_QUERY, {})
        states = {state["id"]: state for state in await streams.state()}
        rates = {row["id"]: row for row in await streams.rates()}
        self.metrics.streams.update(
            {
                (stream.namespace, stream.name): _measured(states[stream.id], rates.get(stream.id, {}))
                for stream in (await streams.page(Page()))[0]
                if stream.id in states
            },
            {
                row["bucket"]: {
                    **row,
                    **_of_bucket(query, row["bucket"]),
                    "watermark": _seconds(row["watermark_us"]),
                }
                for row in await streams.buckets()
            },
            {**query, "active": pipeline["active"]},
            queries,
        )

    async def _measure_jobs(self) -> None:
        jobs, _ = await self.store.jobs.page(Page())
        conditions = await self.store.jobs.conditions(jobs) if jobs else {}
        self.metrics.jobs.update(
            {
                (job.namespace, job.name): {**_measured(found.progress, found.rates), "state": found.state}
                for job in jobs
                if (found := conditions.get(job.id)) is not None
            }
        )


def _measured(state: dict[str, Any], rates: dict[str, Any]) -> dict[str, Any]:
    """The progress of a stream or job with times in seconds, and its rates."""
    return {
        **state,
        "watermark": _seconds(state["watermark_us"]),
        "lag": _age(state["now"], state["unread_since"]),
        "held": _age(state["now"], state["held_since"]),
        **{name: rates.get(name) for name in ("arriving", "processed", "sealed", "backpressure")},
    }


def _of_bucket(query: dict[str, Any], bucket: int) -> dict[str, Any]:
    """The streams query's report on a bucket."""
    reported = query.get("buckets", {}).get(str(bucket), {})
    return {
        "processed": reported.get("processedRowsPerSecond"),
        "batchSecondsHistogram": reported.get("batchSecondsHistogram"),
    }


def _seconds(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / 1e6


def _age(now: datetime, since: datetime | None) -> float:
    return 0.0 if since is None else max(0.0, (now - since).total_seconds())
