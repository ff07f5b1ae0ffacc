"""The pipeline process: stands by until it leads, then supervises its queries."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from ...settings import Settings
from ...signals import handlers_kept
from ...store.errors import StoreError
from ...store.migrate import SchemaTooNew, migrate
from ..external.job_queries import JobQueries
from ..spark.local_checkpoints import speed_up_local_checkpoints
from ..spark.session import end_session, is_local, start_session
from ..streams.streams_query import StreamsQuery
from .leadership import Leadership
from .supervisor import Supervisor
from .warm_up import WarmUp

log = logging.getLogger("queenspark.pipeline")

STAND_BY_SECONDS = 1.0


class Pipeline:
    """Runs until it is stopped."""

    def __init__(self, settings: Settings, url: str) -> None:
        self._settings = settings
        self._url = url
        self._stop = threading.Event()
        self._is_starting = False
        self._spark: SparkSession | None = None

    def stop(self) -> None:
        """Stop `run` soon; for signal handlers, which run in the thread of `run`."""
        self._stop.set()
        if self._is_starting:
            self._is_starting = False
            raise KeyboardInterrupt

    @contextmanager
    def _starting(self) -> Iterator[None]:
        """Mark a slow operation that is safe to interrupt: a signal aborts it."""
        self._is_starting = True
        try:
            if self._stop.is_set():
                raise KeyboardInterrupt
            yield
        finally:
            self._is_starting = False

    def run(self) -> None:
        """Alternate between standby and leading; raises SparkEnded when Spark itself has died."""
        log.info("starting Spark on %s", self._settings.spark_master)
        try:
            # Spark would turn Ctrl-C into a KeyboardInterrupt anywhere.
            with self._starting(), handlers_kept():
                self._spark = start_session(self._settings)
                checkpoint = self._settings.spark_checkpoint or str(self._settings.data_dir.absolute())
                speed_up_local_checkpoints(self._spark, checkpoint)
        except KeyboardInterrupt:
            return
        except Exception:
            if self._stop.is_set():  # an interrupted start may fail in any way
                return
            raise
        leadership = Leadership(self._url)
        log.info("Spark %s is running", self._spark.version)
        try:
            warm_up: WarmUp | None = None
            was_waiting = is_migrated = False
            while not self._stop.is_set():
                try:
                    if not is_migrated:
                        self._migrate()
                        is_migrated = True
                    leader = leadership.claim()
                except SchemaTooNew:
                    raise
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
                    log.info("standing by: another pipeline is leading")
                    was_waiting = True
                    if warm_up is None and is_local(self._settings.spark_master):
                        warm_up = WarmUp(self._spark)
                elif warm_up is not None:
                    warm_up.check()
                self._stop.wait(STAND_BY_SECONDS)
        except KeyboardInterrupt:
            pass
        finally:
            leadership.resign()
            end_session(self._spark)

    def _migrate(self) -> None:
        """Install this version's functions, which brokers of another version lack."""
        for name in migrate(self._url):
            log.info("migrated: %s", name)

    def _lead(self, leadership: Leadership, epoch: int) -> None:
        assert self._spark is not None
        log.info("leading, epoch %d", epoch)
        with leadership.kept(epoch) as lost:
            queries = [StreamsQuery.of(self._settings, self._url)]
            jobs = JobQueries.of(self._settings, self._url)
            Supervisor(self._spark, self._url, queries, jobs, starting=self._starting).run(
                epoch, self._stop, lost
            )
        if lost.is_set():
            log.warning("no longer leading, epoch %d", epoch)
