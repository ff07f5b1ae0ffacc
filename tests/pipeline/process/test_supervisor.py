"""Several queries under one supervisor: none disturbs another."""

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from queenspark.pipeline.process.supervisor import Supervisor
from tests.pipeline.queues import Queues

PAUSES = (0.1, 0.2, 0.4)


class Counting:
    """Counts rows of Spark's rate source; fails while its file `broken` exists."""

    def __init__(self, name: str, folder: Path, seq: int = 0) -> None:
        self.name = name
        self.seq = seq
        self.reason = ""
        self.starts = 0
        self.batches = 0
        self.is_closed = False
        self._checkpoint = folder / name / "checkpoint"
        self.broken = folder / name / "broken"
        self.broken.parent.mkdir(exist_ok=True)

    def start(self, spark: SparkSession, epoch: int) -> StreamingQuery:
        self.starts += 1
        broken = self.broken

        def check(_: DataFrame, __: int) -> None:
            if broken.exists():
                raise ValueError("it is broken")

        rows = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
        to = rows.writeStream.foreachBatch(check).queryName(f"{self.name}-{epoch}")
        return to.option("checkpointLocation", str(self._checkpoint)).start()

    def report(self, batches: Sequence[StreamingQueryProgress]) -> dict[str, Any]:
        self.batches += len(batches)
        return {"rows": sum(batch["numInputRows"] for batch in batches)}

    def failed(self, reason: str) -> None:
        self.reason = reason

    def close(self) -> None:
        self.is_closed = True


class Steady(Counting):
    """Counts rows to nowhere, and never fails."""

    def start(self, spark: SparkSession, epoch: int) -> StreamingQuery:
        self.starts += 1
        rows = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
        to = rows.writeStream.format("noop").queryName(f"{self.name}-{epoch}")
        return to.option("checkpointLocation", str(self._checkpoint)).start()


class Passing:
    """Queries that come and go."""

    def __init__(self, *queries: Counting) -> None:
        self.queries = list(queries)
        self.tidied = 0

    def wanted(self) -> list[Counting]:
        return list(self.queries)

    def tidy(self, spark: SparkSession) -> None:
        self.tidied += 1

    def close(self) -> None:
        self.queries = []


@contextmanager
def supervised(
    spark: SparkSession, url: str, *queries: Counting, more: Passing | None = None
) -> Iterator[None]:
    stop = threading.Event()
    supervisor = Supervisor(spark, url, queries, more, pauses=PAUSES)
    thread = threading.Thread(target=supervisor.run, args=(7, stop, threading.Event()))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def wait_for(condition: Callable[[], bool], what: str, within: float = 90.0) -> None:
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def pauses_of(name: str, records: list[logging.LogRecord]) -> list[float]:
    found = (
        re.match(rf"the {name} query failed, restarting in ([\d.]+) s: ", each.message) for each in records
    )
    return [float(match[1]) for match in found if match]


def stats(queues: Queues, name: str) -> dict[str, Any]:
    rows = queues.run("SELECT value FROM queenspark.pipeline_stats WHERE key = %s", name)
    return dict(rows[0][0]) if rows else {}


def test_a_query_that_fails_again_and_again_disturbs_no_other(
    spark: SparkSession, queues: Queues, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one, two = Steady("one", tmp_path), Steady("two", tmp_path)
    bad = Counting("bad", tmp_path)
    bad.broken.touch()
    with supervised(spark, queues.url, one, bad, two):
        wait_for(lambda: len(pauses_of("bad", caplog.records)) >= 4, "the query did not fail often enough")
        assert pauses_of("bad", caplog.records)[:4] == [0.1, 0.2, 0.4, 0.4], "pauses grow up to the longest"
        failed = stats(queues, "bad")
        assert failed["failures"] >= 3
        assert "it is broken" in failed["error"]
        assert "it is broken" in bad.reason
        seen = one.batches, two.batches
        wait_for(lambda: one.batches > seen[0] and two.batches > seen[1], "the others do not go on")

        bad.broken.unlink()
        wait_for(lambda: bad.batches >= 3, "the query did not come back")
        wait_for(lambda: stats(queues, "bad").get("failures") == 0, "good batches reset the failure count")
        assert stats(queues, "bad")["error"] is None
        before = len(pauses_of("bad", caplog.records))
        bad.broken.touch()
        wait_for(lambda: len(pauses_of("bad", caplog.records)) > before, "the query did not fail")
        assert pauses_of("bad", caplog.records)[before] == 0.1, "the first pause again"
        for query in (one, two):
            wait_for(lambda query=query: stats(queues, query.name).get("batch", 0) > 0, "no statistics")  # type: ignore[misc]
            found = stats(queues, query.name)
            assert (found["state"], found["failures"]) == ("running", 0)
            assert sum(found["batchSecondsHistogram"]["counts"]) >= query.batches
    assert (one.starts, two.starts) == (1, 1)
    assert all(query.is_closed for query in (one, bad, two))
    assert not [query for query in spark.streams.active if query.name and query.name.endswith("-7")]


def test_queries_start_and_stop_with_their_jobs(spark: SparkSession, queues: Queues, tmp_path: Path) -> None:
    lasting, first, second = (Steady(name, tmp_path) for name in ("lasting", "first", "second"))
    more = Passing(first, second)
    with supervised(spark, queues.url, lasting, more=more):
        wait_for(lambda: bool(first.batches and second.batches), "both run")
        changed = Steady("first", tmp_path, seq=1)
        more.queries = [changed]
        wait_for(lambda: first.is_closed and second.is_closed, "they were not stopped")
        wait_for(lambda: changed.batches > 0, "the changed one did not start")
        assert lasting.starts == 1
    assert changed.is_closed
    assert not [query for query in spark.streams.active if query.name and query.name.endswith("-7")]
