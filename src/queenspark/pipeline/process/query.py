"""The face that the supervisor sees of a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery


class Query(Protocol):
    """One kind of work that the pipeline does; a new kind is a new class with these members.

    A query owns its checkpoint: no two queries of a pipeline may share one.
    """

    @property
    def name(self) -> str:
        """The name in the log and the key of its statistics, unique within a pipeline."""

    @property
    def seq(self) -> int:
        """Which change of the definitions it is of: one of another change takes its place."""

    def start(self, spark: SparkSession, epoch: int) -> StreamingQuery:
        """Start it from its checkpoint; sinks write only while `epoch` is the leader's."""

    def report(self, batches: Sequence[StreamingQueryProgress]) -> dict[str, Any]:
        """Statistics for the brokers, after these batches; none when it was idle."""

    def failed(self, reason: str) -> None:
        """It failed, and will be started again."""

    def close(self) -> None:
        """Release what it holds besides Spark's query; it is not started again."""


class Queries(Protocol):
    """Queries that come and go."""

    def wanted(self) -> Sequence[Query]:
        """Those that should run now."""

    def tidy(self, spark: SparkSession) -> None:
        """Remove what is left of those that have ended for good."""

    def close(self) -> None:
        """Release what it holds."""
