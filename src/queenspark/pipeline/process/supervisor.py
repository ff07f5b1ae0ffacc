"""The supervisor: keeps the queries of a leading pipeline running, each for itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from ...store.pipeline import PipelineStore
from ..errors import SparkEnded
from .query import Query
from .watch import PAUSES, Watch

STEP_SECONDS = 0.5


class Supervisor:
    """Runs queries side by side in one Spark session; one that fails is restarted and disturbs no other.

    `starting` wraps each start of a query, which takes seconds: a process makes it interruptible by signals.
    """

    def __init__(
        self,
        spark: SparkSession,
        url: str,
        queries: Sequence[Query],
        *,
        starting: Callable[[], AbstractContextManager[None]] = nullcontext,
        pauses: Sequence[float] = PAUSES,
    ) -> None:
        names = [query.name for query in queries]
        assert len(set(names)) == len(names), f"two queries have one name: {names}"
        self._spark = spark
        self._store = PipelineStore(url)
        self._watches = [Watch(query, self._store, starting, pauses) for query in queries]

    def run(self, epoch: int, stop: threading.Event, lost: threading.Event) -> None:
        """Run the queries until told to stop, or until leadership is lost; raises SparkEnded if Java died."""
        try:
            while not stop.is_set() and not lost.is_set():
                for watch in self._watches:
                    watch.step(self._spark, epoch)
                stop.wait(STEP_SECONDS)
        except (Py4JError, OSError) as error:
            if not stop.is_set():  # whoever stops all processes at once stops Java too
                raise SparkEnded("Spark's Java process ended") from error
        finally:
            for watch in self._watches:
                watch.stop()
            self._store.close()
