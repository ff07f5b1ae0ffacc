"""The pipeline process: stands by or leads, runs the streams query, starts it again when it fails."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

import msgspec
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ...settings import Settings, decode_key
from ...signals import handlers_kept
from ...store.errors import StoreError
from ...store.pipeline import PipelineStore
from ..errors import SparkEnded
from ..spark.session import end_session, is_local, start_session
from ..streams.streams_query import start_streams
from .leadership import Leadership
from .warm_up import WarmUp

log = logging.getLogger("queenspark.pipeline")

STAND_BY_SECONDS = 1.0
_LOOK_SECONDS = 0.25
_PAUSES = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_GOOD_BATCHES = 3  # after so many the query counts as well again


class Pipeline:
    """Runs until it is told to stop."""

    def __init__(self, settings: Settings, url: str) -> None:
        self._settings = settings
        self._url = url
        self._stop = threading.Event()
        self._is_starting = False
        self._spark: SparkSession | None = None
        self._last_batch = monotonic()

    def stop(self) -> None:
        """End `run` soon; for signal handlers, which run in the thread that `run` is in."""
        self._stop.set()
        if self._is_starting:
            self._is_starting = False
            raise KeyboardInterrupt

    @contextmanager
    def _starting(self) -> Iterator[None]:
        """What takes several seconds and can be left half done: a signal interrupts it."""
        self._is_starting = True
        try:
            if self._stop.is_set():
                raise KeyboardInterrupt
            yield
        finally:
            self._is_starting = False

    def run(self) -> None:
        """Stand by and lead, by turns; raises SparkEnded when Spark itself has died."""
        log.info("starting Spark on %s", self._settings.spark_master)
        try:
            # Spark would make Ctrl-C a KeyboardInterrupt, at any place.
            with self._starting(), handlers_kept():
                self._spark = start_session(self._settings)
        except KeyboardInterrupt:
            return
        except Exception:
            if self._stop.is_set():  # what is interrupted may fail in any way
                return
            raise
        leadership = Leadership(self._url)
        log.info("Spark %s is up", self._spark.version)
        try:
            warm_up: WarmUp | None = None
            was_waiting = False
            while not self._stop.is_set():
                try:
                    leader = leadership.claim()
                except StoreError as error:
                    log.warning("%s", error)
                    self._stop.wait(STAND_BY_SECONDS)
                    continue
                if leader.is_mine:
                    if warm_up is not None:
                        warm_up.stop()
                    self._lead(leadership, leader.epoch)
                    was_waiting = False
                elif not was_waiting:
                    log.info("standing by: another pipeline leads")
                    was_waiting = True
                    if warm_up is None and is_local(self._settings.spark_master):
                        warm_up = WarmUp(self._spark)
                elif warm_up is not None:
                    warm_up.look()
                self._stop.wait(STAND_BY_SECONDS)
        except KeyboardInterrupt:
            pass
        finally:
            leadership.resign()
            end_session(self._spark)

    def _lead(self, leadership: Leadership, epoch: int) -> None:
        log.info("leading, epoch %d", epoch)
        failures = 0
        with leadership.kept(epoch) as lost, PipelineStore(self._url) as store:
            while not self._stop.is_set() and not lost.is_set():
                try:
                    with self._starting():
                        query = self._start(epoch)
                    reason, batches = self._watch(query, lost, store)
                except (Py4JJavaError, PySparkException) as error:
                    reason, batches = _plain(str(error)), 0
                except (Py4JError, OSError) as error:
                    if self._stop.is_set():  # who stops all processes at once stops Java too
                        break
                    raise SparkEnded("Spark's Java process ended") from error
                if reason is None:
                    break
                failures = 0 if batches >= _GOOD_BATCHES else failures + 1
                pause = _PAUSES[min(failures, len(_PAUSES) - 1)]
                log.error("the streams query failed, again in %.1f s: %s", pause, reason)
                self._stop.wait(pause)
        if lost.is_set():
            log.warning("no longer leading, epoch %d", epoch)

    def _start(self, epoch: int) -> StreamingQuery:
        assert self._spark is not None
        settings = self._settings
        key = settings.encryption_key
        return start_streams(
            self._spark,
            self._url,
            epoch=epoch,
            checkpoint=settings.spark_checkpoint
            or str(settings.data_dir.absolute() / "checkpoint" / "streams"),
            max_rows=settings.spark_max_rows,
            encryption_key=decode_key(key) if key else None,
        )

    def _watch(
        self, query: StreamingQuery, lost: threading.Event, store: PipelineStore
    ) -> tuple[str | None, int]:
        """Wait for the query to end; why it failed, if it did, and how many batches it had."""
        seen = -1
        batches = 0
        while query.isActive and not self._stop.is_set() and not lost.is_set():
            self._stop.wait(_LOOK_SECONDS)
            progress = query.lastProgress
            if progress is not None and progress["batchId"] != seen:
                seen = progress["batchId"]
                batches += 1
                self._tell(store, progress)
        failure = query.exception()
        if query.isActive:
            query.stop()
        return (None if failure is None else _plain(str(failure))), batches

    def _tell(self, store: PipelineStore, progress: Any) -> None:
        """Let the brokers know how the query does."""
        counted = (progress["observedMetrics"] or {}).get("batch")
        records = int(counted["records"] or 0) if counted is not None else 0
        seconds = int(progress["durationMs"].get("triggerExecution", 0)) / 1000
        now = monotonic()
        since, self._last_batch = now - self._last_batch, now
        said = {
            "batch": progress["batchId"],
            "records": records,
            "windows": int(counted["windows"] or 0) if counted is not None else 0,
            "openWindows": int(counted["open_windows"] or 0) if counted is not None else 0,
            "stateBytes": int(counted["state_bytes"] or 0) if counted is not None else 0,
            "batchSeconds": seconds,
            "inputRowsPerSecond": round(records / max(since, seconds, 0.001), 1),
            "processedRowsPerSecond": round(records / max(seconds, 0.001), 1),
        }
        try:
            store.say("query", msgspec.json.encode(said).decode())
        except StoreError as error:
            log.warning("%s", error)


def _plain(text: str) -> str:
    """The one line of a failure of Spark that says what happened."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if ("queenspark." in line and "Error" in line) or ": " in line]
    errors = [line for line in telling if not line.startswith(("at ", "File ", "==="))]
    return (errors[-1] if errors else lines[0] if lines else "no reason given")[:500]
