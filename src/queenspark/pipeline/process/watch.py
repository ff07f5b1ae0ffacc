"""A watch over one query: starts it, reports its batches, restarts it with growing pauses after failures."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from time import monotonic
from typing import Any

import msgspec
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from ...store.errors import StoreError
from ...store.pipeline import PipelineStore
from ..errors import JobFailed
from ..histogram import Histogram
from .query import Query
from .reason import reason_of

log = logging.getLogger("queenspark.pipeline")

PAUSES = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds before a restart: after the first failure, the second, and so on."""
GOOD_BATCHES = 3
"""Reset the failure count after this many good batches."""

_REPORT_SECONDS = 1.0
_IDLE_REPORT_SECONDS = 5.0


class Watch:
    """Keeps one query running. Call `step` several times a second, and finally `stop`."""

    def __init__(
        self,
        query: Query,
        store: PipelineStore,
        starting: Callable[[], AbstractContextManager[None]],
        pauses: Sequence[float] = PAUSES,
    ) -> None:
        self._query = query
        self._store = store
        self._starting = starting
        self._pauses = pauses
        self._running: StreamingQuery | None = None
        self._start_at = 0.0
        self._failures = 0
        self._error: str | None = None
        self._seen = -1
        self._good = 0
        self._fresh: list[StreamingQueryProgress] = []
        self._batch_seconds = 0.0
        self._histogram = Histogram()
        self._reported_at = 0.0

    def step(self, spark: SparkSession, epoch: int) -> None:
        """Start the query if due, collect its progress, schedule a restart if it failed."""
        if self._running is None:
            if monotonic() >= self._start_at:
                self._start(spark, epoch)
            return
        is_active = self._running.isActive
        self._collect(self._running)
        if is_active:
            self._report_if_due()
        else:
            failure = self._running.exception()
            self._running = None
            self._fail(reason_of(str(failure)) if failure is not None else "it was stopped")

    def stop(self) -> None:
        """Stop the query permanently."""
        running, self._running = self._running, None
        if running is not None:
            with suppress(Py4JError, PySparkException, OSError):
                running.stop()
        self._query.close()

    def _start(self, spark: SparkSession, epoch: int) -> None:
        self._seen, self._good, self._fresh = -1, 0, []
        try:
            with self._starting():
                self._running = self._query.start(spark, epoch)
        except JobFailed as error:
            self._fail(str(error))
        except (Py4JJavaError, PySparkException, StoreError) as error:
            self._fail(reason_of(str(error)))

    def _collect(self, running: StreamingQuery) -> None:
        last = running.lastProgress
        if last is None or last["batchId"] == self._seen:
            return
        missed = self._seen >= 0 and last["batchId"] > self._seen + 1
        found = running.recentProgress if missed else [last]
        fresh = {each["batchId"]: each for each in found if each["batchId"] > self._seen}
        for number in sorted(fresh):
            self._fresh.append(fresh[number])
            self._batch_seconds = _seconds(fresh[number])
            self._histogram.observe(self._batch_seconds)
        self._seen = last["batchId"]
        self._good += len(fresh)
        if self._good >= GOOD_BATCHES:
            self._failures, self._error = 0, None

    def _fail(self, reason: str) -> None:
        pause = self._pauses[min(self._failures, len(self._pauses) - 1)]
        self._failures += 1
        self._error = reason
        self._start_at = monotonic() + pause
        log.error("the %s query failed, restarting in %.1f s: %s", self._query.name, pause, reason)
        try:
            self._query.failed(reason)
        except StoreError as error:
            log.warning("%s", error)
        self._report()

    def _report_if_due(self) -> None:
        pause = _REPORT_SECONDS if self._fresh else _IDLE_REPORT_SECONDS
        if monotonic() >= self._reported_at + pause:
            self._report()

    def _report(self) -> None:
        """Report the query's progress to the brokers."""
        batches, self._fresh = self._fresh, []
        self._reported_at = monotonic()
        state: dict[str, Any] = {
            "state": "running" if self._running is not None else "restarting",
            "failures": self._failures,
            "error": self._error,
            "batch": self._seen,
            "batchSeconds": self._batch_seconds,
            "batchSecondsHistogram": self._histogram.to_json(),
        }
        try:
            said = {**state, **self._query.report(batches)}
            self._store.say(self._query.name, msgspec.json.encode(said).decode())
        except StoreError as error:
            log.warning("%s", error)


def _seconds(batch: StreamingQueryProgress) -> float:
    return int(batch["durationMs"].get("triggerExecution", 0)) / 1000
