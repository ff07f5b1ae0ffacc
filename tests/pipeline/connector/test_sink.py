"""DataFrames into queues: as messages that consumers can read, and never twice."""

import re
import shutil
from decimal import Decimal
from itertools import permutations
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

from queenspark.pipeline.connector.items import RowIds
from queenspark.store.log import LogReader
from tests.pipeline.queues import Queues

LONG = 30.0


def writer(frame: DataFrame, queues: Queues, **options: str) -> DataFrameWriter:
    return frame.write.format("queen").mode("append").options(url=queues.url, queue="out", **options)


def copy(spark: SparkSession, queues: Queues, checkpoint: Path) -> None:
    """Copy queue `in` to queue `out` with a streaming query, up to the current end."""
    frame = queues.stream(spark, ["in"], maxRowsPerTrigger="4").select("partition", "data")
    query = (
        frame.writeStream.format("queen")
        .options(url=queues.url, queue="out", checkpointLocation=str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)


def forget_commits(checkpoint: Path, first: int) -> None:
    """The state after a crash between the push and Spark's commit of a batch."""
    for file in (checkpoint / "commits").iterdir():
        number = file.name.strip(".").partition(".")[0]
        if number.isdigit() and int(number) >= first:
            file.unlink()
    shutil.rmtree(checkpoint / "commits" / "tmp", ignore_errors=True)


def test_a_struct_becomes_the_payload(spark: SparkSession, queues: Queues) -> None:
    frame = spark.sql(
        "SELECT 'k' AS partition, 'mine' AS transaction_id, named_struct("
        " 'n', 1, 'price', cast(1.50 AS decimal(9,2)), 'tags', map('a', array(1, null)), 'none', null,"
        " 'at', timestamp'2026-05-01 12:00:00') AS data"
    )
    writer(frame, queues).save()
    assert queues.payloads("out") == [
        {"n": 1, "price": float(Decimal("1.50")), "tags": {"a": [1, None]}, "none": None,
         "at": "2026-05-01T12:00:00Z"}
    ]  # fmt: skip
    rows = queues.run(
        "SELECT p.name, m.transaction_id FROM queenspark.messages m"
        " JOIN queenspark.partitions p ON p.id = m.partition_id"
    )
    assert rows == [("k", "mine")]


def test_json_text_is_unchanged_and_the_partition_is_optional(spark: SparkSession, queues: Queues) -> None:
    frame = spark.createDataFrame([('{"b": 1,  "a": 1e3}',), (None,)], "data string").coalesce(1)
    writer(frame, queues).save()
    assert queues.run("SELECT payload FROM queenspark.messages ORDER BY id") == [
        ('{"b": 1,  "a": 1e3}',), ("null",),
    ]  # fmt: skip
    assert queues.run("SELECT name FROM queenspark.partitions") == [("Default",)]


def test_written_messages_can_be_popped_and_wake_parked_polls(spark: SparkSession, queues: Queues) -> None:
    with LogReader(queues.url) as log:
        log.wait(0.01, {"out"})
        writer(spark.sql("SELECT map('n', 1) AS data"), queues).save()
        assert log.wait(LONG, {"out"})
    batch = queues.with_store(lambda store: store.deliverer.pop("out", "g", batch=10, auto_ack=True))
    assert [str(message.payload) for message in batch.messages] == ['{"n":1}']


def test_equal_rows_are_all_written(spark: SparkSession, queues: Queues) -> None:
    writer(spark.range(20, numPartitions=3).selectExpr("'1' AS data"), queues).save()
    assert queues.payloads("out") == [1] * 20


def test_a_transaction_id_is_written_once(spark: SparkSession, queues: Queues) -> None:
    frame = spark.range(6).selectExpr("cast(id AS string) AS data", "concat('t', id % 3) AS transaction_id")
    writer(frame, queues).save()
    writer(frame, queues).save()
    assert len(queues.payloads("out")) == 3


def test_a_write_without_a_name_is_always_new(spark: SparkSession, queues: Queues) -> None:
    frame = spark.sql("SELECT '1' AS data")
    writer(frame, queues).save()
    writer(frame, queues).save()
    assert queues.payloads("out") == [1, 1]


def test_a_write_with_a_name_can_be_repeated(spark: SparkSession, queues: Queues) -> None:
    frame = spark.range(100, numPartitions=2).selectExpr("cast(id AS string) AS data")
    writer(frame, queues, name="import").save()
    queues.run("DELETE FROM queenspark.messages WHERE payload::integer % 7 = 0")
    writer(frame, queues, name="import").save()
    assert sorted(queues.payloads("out")) == list(range(100))


def test_a_batch_that_is_repeated_after_a_crash_is_completed_and_adds_nothing_twice(
    spark: SparkSession, queues: Queues, tmp_path: Path
) -> None:
    queues.push("in", *[n // 2 for n in range(8)])
    copy(spark, queues, tmp_path)
    assert sorted(queues.payloads("out")) == [n // 2 for n in range(8)]
    forget_commits(tmp_path, first=1)
    queues.run(
        "DELETE FROM queenspark.messages m USING queenspark.queues q"
        " WHERE q.id = m.queue_id AND q.name = 'out' AND m.payload IN ('2', '3')"
        " AND m.id % 2 = 0"
    )
    assert len(queues.payloads("out")) == 6, "the batch was written in part"
    queues.push("in", 10, 11, partition="more")
    copy(spark, queues, tmp_path)
    assert sorted(queues.payloads("out")) == [*(n // 2 for n in range(8)), 10, 11]


def test_foreach_batch_is_repeatable_with_a_name(spark: SparkSession, queues: Queues, tmp_path: Path) -> None:
    queues.push("in", *range(6))

    def run() -> None:
        query = (
            queues.stream(spark, ["in"], maxRowsPerTrigger="3")
            .select("data")
            .writeStream.option("checkpointLocation", str(tmp_path))
            .foreachBatch(lambda frame, number: writer(frame, queues, name="copy").save())
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(60)

    run()
    forget_commits(tmp_path, first=1)
    run()
    assert sorted(queues.payloads("out")) == list(range(6))


def test_ids_of_rows_depend_on_their_content_and_not_on_their_order() -> None:
    rows = [("p", b"1"), ("p", b"1"), ("p", b"2"), ("r", b"1")]

    def ids(order: tuple[int, ...], *names: object) -> set[str]:
        row_ids = RowIds(*names)
        return {row_ids.of(*rows[n]) for n in order}

    found = {frozenset(ids(order, "query", 1, 0)) for order in permutations(range(4))}
    (one,) = found
    assert len(one) == 4
    assert not one & ids((0, 1, 2, 3), "query", 2, 0), "of another batch"
    assert not one & ids((0, 1, 2, 3), "query", 1, 1), "of another task"


def test_an_encrypted_queue_stays_encrypted(spark: SparkSession, queues: Queues) -> None:
    queues.configure("out", encryptionEnabled=True)
    writer(spark.sql("SELECT map('card', 1234) AS data"), queues).save()
    assert "1234" not in str(queues.run("SELECT payload FROM queenspark.messages"))
    assert [row.data for row in queues.frame(spark, ["out"]).collect()] == ['{"card":1234}']


def test_in_push_maintenance_messages_are_staged(spark: SparkSession, queues: Queues) -> None:
    queues.with_store(lambda store: store.maintenance.set_push(True))
    writer(spark.sql("SELECT '1' AS data"), queues).save()
    assert queues.payloads("out") == []
    queues.with_store(lambda store: store.maintenance.set_push(False))
    assert queues.payloads("out") == [1]


@pytest.mark.parametrize(
    ("select", "fix"),
    [
        ("'not json' AS data", "column data: 'not json' is not valid JSON .*: use to_json"),
        ("'1' AS data, '' AS partition", "column partition: '' must not be empty"),
        ("'1' AS data, 'a\\tb' AS transaction_id", "must not contain control characters"),
        ("repeat('[', 65) || repeat(']', 65) AS data", "column data: a value is nested deeper than"),
        ("'1' AS data, 'k' AS key", "unknown column key"),
    ],
)
def test_a_row_that_cannot_be_a_message_is_named(
    spark: SparkSession, queues: Queues, select: str, fix: str
) -> None:
    with pytest.raises(PySparkException, match=fix):
        writer(spark.sql(f"SELECT {select}"), queues).save()
    assert queues.payloads("out") == []


def test_a_full_queue_refuses_the_write(spark: SparkSession, queues: Queues) -> None:
    queues.configure("out", maxSize=3)
    with pytest.raises(PySparkException, match="queue out is full"):
        writer(spark.range(10, numPartitions=1).selectExpr("'1' AS data"), queues).save()


def test_a_queue_cannot_be_overwritten(spark: SparkSession, queues: Queues) -> None:
    with pytest.raises(AnalysisException, match="only ever appended to"):
        writer(spark.sql("SELECT '1' AS data"), queues).mode("overwrite").save()


def test_headers_are_written_and_may_be_left_out(spark: SparkSession, queues: Queues) -> None:
    frame = spark.sql(
        "SELECT '1' AS data, map('tenant', 'north') AS headers UNION ALL SELECT '2', NULL"
        " UNION ALL SELECT '3', cast(map() AS map<string,string>)"
    )
    writer(frame, queues).save()
    assert queues.run("SELECT payload, headers FROM queenspark.messages ORDER BY payload") == [
        ("1", '{"tenant":"north"}'), ("2", None), ("3", None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("headers", "error"),
    [
        ("'tenant=north'", "column headers is of type string: use a map<string,string>"),
        ("map('n', 1)", "column headers is of type map<string,int>: use a map<string,string>"),
        ("map('_version', '1')", "column headers: a value has the name '_version'; names that begin with _"),
        ("map('n', cast(NULL AS string))", "column headers: a value has null under 'n': remove it"),
    ],
)
def test_headers_that_no_message_can_have_are_named(
    spark: SparkSession, queues: Queues, headers: str, error: str
) -> None:
    with pytest.raises(PySparkException, match=re.escape(error)):
        writer(spark.sql(f"SELECT '1' AS data, {headers} AS headers"), queues).save()


def test_rows_that_differ_in_headers_only_have_ids_of_their_own() -> None:
    rows = [("p", b"1", None), ("p", b"1", {"a": "1", "b": "2"}), ("p", b"1", {"a": "2"})]
    forth, back = RowIds("w"), RowIds("w")
    ids = [forth.of(*row) for row in rows]
    assert len(set(ids)) == 3
    assert [back.of(*row) for row in reversed(rows)] == ids[::-1]
    assert RowIds("w").of("p", b"1", {"b": "2", "a": "1"}) == ids[1]
