"""Queues as DataFrames: every message once, in parallel, as a batch and as a stream."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from queenspark.pipeline.connector import source
from queenspark.pipeline.connector.messages import to_rows
from queenspark.pipeline.connector.options import ReadOptions
from queenspark.pipeline.connector.source import (
    SPLIT_ROWS,
    QueueBatchReader,
    QueueStreamReader,
)
from queenspark.store.encryption import Cipher
from queenspark.store.errors import Refused
from queenspark.store.log import log_of_this_process
from queenspark.store.news import tell_of_pushes
from tests.pipeline.queues import Queues

LONG = 60.0


def options(queues: Queues, **more: str) -> ReadOptions:
    return ReadOptions.parse({"url": queues.url, "queue": "q", **more})


@pytest.fixture(autouse=True)
def tasks_disconnect(queues: Queues) -> Iterator[None]:
    """A task in this process leaves a connection open, as in a worker of Spark."""
    yield
    log_of_this_process(queues.url).close()


@pytest.fixture
def stream_reader(queues: Queues) -> Iterator[QueueStreamReader]:
    """A reader of the stream of an empty queue `q`, in this process."""
    queues.configure("q")
    reader = QueueStreamReader(options(queues))
    yield reader
    reader.stop()


class Batches:
    """The rows of a streaming query, batch by batch."""

    def __init__(self, stream: DataFrame, checkpoint: Path) -> None:
        self._writer = stream.writeStream.option("checkpointLocation", str(checkpoint))
        self.data: list[list[str]] = []

    def run(self) -> "Batches":
        """Read all that there is now."""
        query = self._writer.foreachBatch(self._take).trigger(availableNow=True).start()
        assert query.awaitTermination(int(LONG))
        self.sources: list[Any] = [progress["sources"][0] for progress in query.recentProgress]
        return self

    def _take(self, frame: DataFrame, number: int) -> None:
        self.data.append(sorted(row.data for row in frame.select("data").collect()))


def test_a_batch_has_every_message_with_its_columns(spark: SparkSession, queues: Queues) -> None:
    queues.push("a", {"n": 1}, partition="same")
    queues.push("b", [2], partition="same")
    rows = queues.frame(spark, ["a", "b"]).orderBy("queue").collect()
    assert [(row.queue, row.partition, row.transaction_id, row.data) for row in rows] == [
        ("a", "same", "t0", '{"n":1}'),
        ("b", "same", "t0", "[2]"),
    ]
    stored = queues.run("SELECT txid, id, created_at FROM queenspark.messages ORDER BY queue_id")
    assert [(row.position, row.message_id) for row in rows] == [(f"{t}-{i}", i) for t, i, _ in stored]
    times = queues.frame(spark, ["a", "b"]).selectExpr("unix_micros(created_at) AS us").collect()
    assert sorted(row.us for row in times) == sorted(round(at.timestamp() * 1_000_000) for *_, at in stored)


def test_parts_have_every_message_once(queues: Queues, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "SPLIT_ROWS", 100)
    queues.fill("q", 250)
    reader = QueueBatchReader(options(queues))
    parts = reader.partitions()
    assert len(parts) == 3
    found = [int(text) for part in parts for batch in reader.read(part) for text in batch["data"].to_pylist()]
    assert sorted(found) == list(range(1, 251))


@pytest.mark.long  # the test above covers all of it but Spark
def test_a_large_queue_is_read_in_parallel_parts(spark: SparkSession, queues: Queues) -> None:
    count = 2 * SPLIT_ROWS + 1000
    queues.fill("large", count)
    frame = queues.frame(spark, ["large"])
    assert frame.rdd.getNumPartitions() == 3
    facts = frame.selectExpr("count(*) AS n", "count(DISTINCT data) AS d", "sum(cast(data AS long)) AS s")
    row = facts.first()
    assert row is not None
    assert (row.n, row.d, row.s) == (count, count, count * (count + 1) // 2)


def test_messages_of_a_part_come_in_the_order_of_the_log() -> None:
    places = [(2, 7), (1, 9), (2, 3), (1, 8)]
    batch = pa.RecordBatch.from_pydict(
        {
            "txid": [txid for txid, _ in places],
            "id": [id_ for _, id_ in places],
            "queue_id": pa.array([1] * 4, pa.int32()),
            "partition": ["p"] * 4,
            "created_us": [0] * 4,
            "transaction_id": ["t"] * 4,
            "encrypted": [False] * 4,
            "payload": ["null"] * 4,
            "headers": pa.array([None, '{"tenant":"north"}', None, None], pa.string()),
        }
    )
    rows = to_rows(batch, {1: "q"}, Cipher(None))
    assert rows["position"].to_pylist() == ["1-8", "1-9", "2-3", "2-7"]
    assert rows["headers"].to_pylist() == [[], [("tenant", "north")], [], []]


def test_headers_are_a_map_and_empty_where_there_are_none(spark: SparkSession, queues: Queues) -> None:
    queues.push("a", 1, headers={"tenant": "north"})
    queues.push("b", 2)
    frame = queues.frame(spark, ["a", "b"])
    assert frame.schema["headers"].dataType.simpleString() == "map<string,string>"
    assert {row.data: row.headers for row in frame.collect()} == {"1": {"tenant": "north"}, "2": {}}
    assert frame.where("headers['tenant'] = 'north'").count() == 1
    assert queues.frame(spark, ["b"]).first().headers == {}  # type: ignore[union-attr]


def test_an_empty_queue_is_an_empty_frame(spark: SparkSession, queues: Queues) -> None:
    queues.configure("q")
    assert queues.frame(spark, ["q"]).collect() == []


def test_a_start_time_skips_older_messages(spark: SparkSession, queues: Queues) -> None:
    queues.push("a", 1)
    queues.push("b", 2, 3)
    ((moment,),) = queues.run(
        "SELECT created_at FROM queenspark.messages WHERE payload = '2' ORDER BY id LIMIT 1"
    )
    rows = queues.frame(spark, ["a", "b"], start=moment.isoformat()).collect()
    assert sorted(row.data for row in rows) == ["2", "3"]
    assert queues.frame(spark, ["a", "b"], start="latest").count() == 0


def test_encrypted_messages_are_readable_with_the_key(spark: SparkSession, queues: Queues) -> None:
    queues.configure("secret", encryptionEnabled=True)
    queues.push("secret", {"card": 1234})
    queues.push("plain", 1)
    assert "1234" not in str(queues.run("SELECT payload FROM queenspark.messages"))
    rows = queues.frame(spark, ["secret", "plain"]).collect()
    assert sorted(row.data for row in rows) == ["1", '{"card":1234}']


def test_encrypted_messages_without_the_key_are_refused(queues: Queues) -> None:
    queues.configure("q", encryptionEnabled=True)
    queues.push("q", 1)
    reader = QueueBatchReader(replace(options(queues), encryption_key=None))
    (split,) = reader.partitions()
    with pytest.raises(Refused, match="QUEENSPARK_ENCRYPTION_KEY"):
        list(reader.read(split))


def test_a_missing_queue_is_named_to_the_caller(spark: SparkSession, queues: Queues) -> None:
    with pytest.raises(AnalysisException, match="queue missing does not exist: push to it first"):
        queues.frame(spark, ["missing"]).collect()


def test_a_wrong_option_is_named_to_the_caller(spark: SparkSession, queues: Queues) -> None:
    with pytest.raises(AnalysisException, match="option start is 'soon': use earliest"):
        queues.frame(spark, ["q"], start="soon").collect()


def test_a_stream_is_cut_to_the_rows_per_trigger_and_goes_on(
    spark: SparkSession, queues: Queues, tmp_path: Path
) -> None:
    queues.push("a", 1, 2, 3)
    queues.push("b", 4, 5)
    stream = queues.stream(spark, ["a", "b"], maxRowsPerTrigger="2")
    first = Batches(stream, tmp_path).run()
    assert first.data == [["1", "2"], ["3", "4"], ["5"]]
    assert first.sources[0]["latestOffset"] == first.sources[2]["endOffset"], "the backlog is reported"
    queues.push("b", 6, partition="new")
    assert Batches(stream, tmp_path).run().data == [["6"]], "from where the first run ended"


def test_a_stream_from_the_latest_skips_existing_messages(
    spark: SparkSession, queues: Queues, tmp_path: Path
) -> None:
    queues.push("q", 1)
    stream = queues.stream(spark, ["q"], start="latest")
    assert not any(Batches(stream, tmp_path).run().data)
    queues.push("q", 2, partition="other")
    assert Batches(stream, tmp_path).run().data == [["2"]]


def test_a_running_stream_reads_new_messages(spark: SparkSession, queues: Queues, tmp_path: Path) -> None:
    queues.configure("q")
    arrived = threading.Event()
    data: list[str] = []

    def take(frame: DataFrame, number: int) -> None:
        data.extend(row.data for row in frame.select("data").collect())
        if len(data) == 2:
            arrived.set()

    writer = queues.stream(spark, ["q"]).writeStream.option("checkpointLocation", str(tmp_path))
    query = writer.foreachBatch(take).start()
    try:
        queues.push("q", 1)
        queues.push("q", 2, partition="other")
        assert arrived.wait(LONG), query.exception()
    finally:
        query.stop()
    assert sorted(data) == ["1", "2"]


def test_an_idle_stream_waits_instead_of_spinning(stream_reader: QueueStreamReader) -> None:
    start = stream_reader.initialOffset()
    began = time.monotonic()
    assert stream_reader.latestOffset(start, ReadAllAvailable()) == start
    assert time.monotonic() - began >= source.WAIT_SECONDS


def test_a_push_ends_the_wait(
    stream_reader: QueueStreamReader, queues: Queues, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "WAIT_SECONDS", LONG)
    start = stream_reader.initialOffset()

    def push() -> None:
        queues.push("q", 1)
        queues.with_store(lambda store: tell_of_pushes(store.database, {"q"}))

    pushing = threading.Timer(0.2, push)
    pushing.start()
    began = time.monotonic()
    assert stream_reader.latestOffset(start, ReadMaxRows(10)) != start
    assert time.monotonic() - began < LONG / 2
    pushing.join()


def test_available_now_goes_no_further_than_its_begin(
    stream_reader: QueueStreamReader, queues: Queues
) -> None:
    queues.push("q", 1)
    stream_reader.prepareForTriggerAvailableNow()
    queues.push("q", 2, partition="other")
    start = stream_reader.initialOffset()
    end = stream_reader.latestOffset(start, ReadAllAvailable())
    (split,) = stream_reader.partitions(start, end)
    assert [text for batch in stream_reader.read(split) for text in batch["data"].to_pylist()] == ["1"]
    assert stream_reader.latestOffset(end, ReadAllAvailable()) == end
