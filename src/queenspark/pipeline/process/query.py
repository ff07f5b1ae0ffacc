"""The supervisor's interface to a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery


class Query(Protocol):
    """A kind of query that the pipeline runs; a new kind is a new class with these members.

    A query owns its checkpoint: no two queries of a pipeline may share one.
    """

    @property
    def name(self) -> str:
        """The name in the log and the key of its statistics, unique within a pipeline."""

    @property
    def seq(self) -> int:
        """The seq of its definition: a query with another seq replaces it."""

    def start(self, spark: SparkSession, epoch: int) -> StreamingQuery:
        """Start it from its checkpoint; sinks write only while `epoch` is the leader's."""

    def report(self, batches: Sequence[StreamingQueryProgress]) -> dict[str, Any]:
        """Statistics for the brokers, after these batches; empty if it was idle."""

    def failed(self, reason: str) -> None:
        """Note a failure; the query is restarted."""

    def close(self) -> None:
        """Release resources other than Spark's query; it is not started again."""


class Queries(Protocol):
    """A changing set of queries."""

    def wanted(self) -> Sequence[Query]:
        """The queries that should run now."""

    def tidy(self, spark: SparkSession) -> None:
        """Remove the remains of queries that have ended permanently."""

    def close(self) -> None:
        """Release its resources."""
