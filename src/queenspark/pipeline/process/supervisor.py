"""The supervisor: keeps the queries of a leading pipeline running, independently of each other."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from time import monotonic

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from ...store.errors import StoreError
from ...store.pipeline import PipelineStore
from ..errors import SparkEnded
from .query import Queries, Query
from .watch import PAUSES, Watch

log = logging.getLogger("queenspark.pipeline")

STEP_SECONDS = 0.5
RECONCILE_SECONDS = 1.0
"""Time between two reconciliations of the changing queries."""


class Supervisor:
    """Runs queries side by side in one Spark session; a failed one is restarted without affecting others.

    Those of `more` change: they are started and stopped with the definitions.

    `starting` wraps each start of a query, which takes seconds: a process makes it interruptible by signals.
    """

    def __init__(
        self,
        spark: SparkSession,
        url: str,
        queries: Sequence[Query],
        more: Queries | None = None,
        *,
        starting: Callable[[], AbstractContextManager[None]] = nullcontext,
        pauses: Sequence[float] = PAUSES,
    ) -> None:
        names = [query.name for query in queries]
        assert len(set(names)) == len(names), f"two queries have one name: {names}"
        self._spark = spark
        self._store = PipelineStore(url)
        self._watch = partial(Watch, store=self._store, starting=starting, pauses=pauses)
        self._watches = [self._watch(query) for query in queries]
        self._more = more
        self._passing: dict[tuple[str, int], Watch] = {}
        self._reconciled_at = 0.0

    def run(self, epoch: int, stop: threading.Event, lost: threading.Event) -> None:
        """Run the queries until stopped or leadership is lost; raises SparkEnded if Java died."""
        try:
            while not stop.is_set() and not lost.is_set():
                self._reconcile()
                for watch in [*self._watches, *self._passing.values()]:
                    watch.step(self._spark, epoch)
                stop.wait(STEP_SECONDS)
        except (Py4JError, OSError) as error:
            if not stop.is_set():  # stopping all processes at once stops Java too
                raise SparkEnded("Spark's Java process ended") from error
        finally:
            for watch in [*self._watches, *self._passing.values()]:
                watch.stop()
            if self._more is not None:
                self._more.close()
            self._store.close()

    def _reconcile(self) -> None:
        """Stop queries that are no longer wanted, and watch new ones."""
        if self._more is None or monotonic() < self._reconciled_at + RECONCILE_SECONDS:
            return
        self._reconciled_at = monotonic()
        try:
            wanted = {(query.name, query.seq): query for query in self._more.wanted()}
        except StoreError as error:
            log.warning("%s", error)
            return
        for key in self._passing.keys() - wanted.keys():
            self._passing.pop(key).stop()
        try:
            self._more.tidy(self._spark)
        except StoreError as error:
            log.warning("%s", error)
        has_new = False
        for key, query in wanted.items():
            if key in self._passing or has_new:
                # Starting several at once would spawn too many processes, and some would time out in Spark.
                query.close()
            else:
                self._passing[key] = self._watch(query)
                has_new = True
