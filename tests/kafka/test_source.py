"""Jobs over Kafka topics, without Spark: columns, order, transactions, and changes of a topic."""

import random
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from queenspark.connectors.kafka.kafka_options import KafkaOptions
from queenspark.connectors.kafka.kafka_position import Range
from queenspark.connectors.kafka.partition_reader import Gap, read_ranges
from queenspark.connectors.reader import ReadFailed
from tests.kafka.topics import DAY, Record, Topics, wait_until

COLUMNS = "k string, n bigint, at timestamp"
MINUTES = (
    "select k, count(*) as c, sum(n) as s, window_start as at from {s} group by k window tumbling(at, 1m)"
)


def click(n: int, key: int, second: int, partition: int, at: int) -> Record:
    value = {"k": f"k{key}", "n": n, "at": f"2026-01-31T12:{second // 60:02d}:{second % 60:02d}Z"}
    return Record(value, partition, at)


def clicks(count: int, partitions: int, seed: int = 1) -> list[Record]:
    """Records of keys that are in all partitions, with times that go back and forth."""
    chance = random.Random(seed)
    return [
        click(
            n,
            chance.randrange(5),
            max(0, n // 4 - chance.randrange(20)),
            chance.randrange(partitions),
            DAY + 250 * n - chance.randrange(300),
        )
        for n in range(count)
    ]


def totals(found: list[dict[str, Any]]) -> dict[tuple[Any, Any], tuple[Any, Any]]:
    """The last row of each key and window."""
    return {(row["k"], row["at"]): (row["c"], row["s"]) for row in found}


def expected(records: list[Record]) -> dict[tuple[Any, Any], tuple[Any, Any]]:
    windows: dict[tuple[Any, Any], list[int]] = {}
    for each in records:
        minute = each.value["at"][:17] + "00.000000Z"
        windows.setdefault((each.value["k"], minute), []).append(each.value["n"])
    return {key: (len(values), sum(values)) for key, values in windows.items()}


def test_kafka_metadata_of_a_record_is_available_as_columns(topics: Topics) -> None:
    topics.create(partitions=2)
    topics.produce("t", [
        Record({"n": 1}, 0, DAY + 1, "a", {"color": b"red", "size": b"\xff"}),
        Record({"n": 2}, 1, DAY + 2),
        Record({"n": 3}, 1, DAY + 3, "b"),
    ])  # fmt: skip
    topics.run(
        topics.source("n bigint") + "create stream {o} as select n, _key as k, _partition as p, _offset as o,"
        " _timestamp as t, _headers.color as c, _headers.size as z from {s}"
    )
    topics.run_job("o")
    at = "2026-01-31T12:00:00.00{}000Z".format
    assert sorted(topics.data("o"), key=lambda row: row["n"]) == [
        {"n": 1, "k": "a", "p": 0, "o": 0, "t": at(1), "c": "red", "z": "/w=="},
        {"n": 2, "k": None, "p": 1, "o": 0, "t": at(2), "c": None, "z": None},
        {"n": 3, "k": "b", "p": 1, "o": 1, "t": at(3), "c": None, "z": None},
    ]
    assert {row.partition for row in topics.rows("o")} == {"0", "1"}


def test_records_that_cannot_be_read_are_dead_and_say_where_they_are(topics: Topics) -> None:
    topics.create()
    values = ['{"n": 1}', "{n: 1}", b"\xff", "[1]", '{"n": "x"}', None, '{"n": 2}']
    topics.produce("t", [Record(value) for value in values])
    topics.run(topics.source("n bigint") + "create stream {o} as select n from {s}")
    topics.run_job("o")
    assert [row["n"] for row in topics.data("o")] == [1, None, 2]
    reasons = sorted(row["reason"] for row in topics.dead("o"))
    assert len(reasons) == 4
    assert 'n is "x", not a BIGINT; it would fit STRING' in reasons[0]
    assert reasons[1].startswith("partition 0, offset 1: not a JSON object")
    assert (
        reasons[2]
        == "partition 0, offset 2: the value is not valid UTF-8; read the topic with format = 'raw'"
    )
    assert reasons[3].startswith("partition 0, offset 3: not a JSON object")


@pytest.mark.parametrize(
    ("format_", "offsets"), [("json", [0, 4, 5, 6]), ("text", [0, 1, 3, 4, 5, 6]), ("raw", list(range(7)))]
)
def test_records_that_cannot_be_read_are_not_counted(
    topics: Topics, format_: str, offsets: list[int]
) -> None:
    topics.create()
    values = ['{"n": 1}', "{n: 1}", b"\xff", "[1]", '{"n": "x"}', None, '{"n": 2}']
    topics.produce("t", [Record(value) for value in values])
    topics.run(topics.source("value string", format=format_) + "create stream {o} as select _offset from {s}")
    topics.run_job("o")
    assert [row["_offset"] for row in topics.data("o")] == offsets
    assert topics.job("o")["dead"] == 7 - len(offsets)


@pytest.mark.parametrize(
    ("format_", "values"), [("text", ["tea", "ü", None]), ("raw", ["dGVh", "w7w=", None])]
)
def test_text_and_raw_values_are_one_column(topics: Topics, format_: str, values: list[str | None]) -> None:
    topics.create()
    topics.produce("t", [Record("tea"), Record("ü"), Record(None)])
    topics.run(topics.source(format=format_) + "create stream {o} as select * from {s}")
    topics.run_job("o")
    assert [row["value"] for row in topics.data("o")] == values


@pytest.mark.parametrize("late", ["process", "drop"])
def test_ten_partitions_give_the_same_rows_in_any_batches(topics: Topics, late: str) -> None:
    partitions = 10 if topics.kafka.is_real else 4
    topics.create(partitions=partitions)
    records = clicks(400, partitions)
    topics.produce("t", records)
    topics.run(topics.source(COLUMNS))
    found = []
    sizes = [1000, 97, 29] if topics.kafka.is_real else [1000]  # the mock cannot find offsets by time
    for rows in sizes:
        topics.run(f"create stream {{o{rows}}} as {MINUTES} with (late = '{late}', grace = '5s')")
        assert topics.run_job(f"o{rows}", max_rows=rows) >= 400 // rows
        found.append(sorted((row.data["k"], *row.data.values()) for row in topics.rows(f"o{rows}")))
    assert found == [found[0]] * len(found)
    if late == "process":
        assert totals(topics.data("o1000")) == expected(records)


def test_a_window_without_a_time_goes_by_the_timestamps_of_kafka(topics: Topics) -> None:
    topics.create()
    topics.produce("t", [Record({"n": n}, 0, DAY + 20_000 * n) for n in range(9)])
    topics.run(
        topics.source("n bigint")
        + "create stream {o} as select count(*) as c, window_start as at from {s} window tumbling(1m)"
    )
    topics.run_job("o")
    assert topics.data("o") == [{"c": 3, "at": f"2026-01-31T12:0{n}:00.000000Z"} for n in range(3)]


def test_a_job_goes_on_where_it_was_and_begins_where_it_says(topics: Topics) -> None:
    topics.create()
    topics.produce("t", [Record({"n": n}, 0, DAY + n * 1000) for n in range(5)])
    topics.run(topics.source("n bigint"))
    at = "2026-01-31T12:00:03Z" if topics.kafka.is_real else "latest"
    for name, start in (("a", "earliest"), ("l", "latest"), ("m", at)):
        topics.run(f"create stream {{{name}}} as select n from {{s}} with (start = '{start}')")
    queries = {name: topics.query(name) for name in "alm"}
    for query in queries.values():
        query.drain()
    topics.produce("t", [Record({"n": 5}, 0, DAY + 5000)])
    for query in queries.values():
        query.restart()
        query.drain()
        query.close()
    numbers = {name: [row["n"] for row in topics.data(name)] for name in "alm"}
    some = [3, 4, 5] if topics.kafka.is_real else [5]
    assert numbers == {"a": [0, 1, 2, 3, 4, 5], "l": [5], "m": some}


def test_a_lost_checkpoint_does_not_move_the_start(topics: Topics) -> None:
    """`latest` is evaluated once: records that came since the first start are not skipped."""
    topics.create(partitions=2)
    topics.produce("t", [Record({"n": n}, n % 2, DAY + n) for n in range(5)])
    topics.run(topics.source("n bigint") + "create stream {o} as select n from {s} with (start = 'latest')")
    with closing(topics.query("o", max_rows=10)) as query:
        query.drain()
        topics.produce("t", [Record({"n": n}, n % 2, DAY + n) for n in range(5, 50)])
        query.begin_again()
        query.drain()
        assert sorted(row["n"] for row in topics.data("o")) == list(range(5, 50))
        topics.produce("t", [Record({"n": n}, n % 2, DAY + n) for n in range(50, 60)])
        query.begin_again()
        query.drain()
    assert sorted(row["n"] for row in topics.data("o")) == list(range(5, 60))


def test_a_run_that_begins_again_adds_nothing(topics: Topics) -> None:
    topics.create(partitions=2)
    topics.produce("t", [Record({"n": n}, n % 2, DAY + n) for n in range(50)])
    topics.run(topics.source("n bigint") + "create stream {o} as select n from {s}")
    query = topics.query("o")
    query.drain()
    query.begin_again()
    query.drain()
    query.close()
    assert sorted(row["n"] for row in topics.data("o")) == list(range(50))


def test_order_needs_keys_in_one_partition(topics: Topics) -> None:
    topics.create()
    topics.run(topics.source("n bigint, k string"))
    reason = topics.refused("create stream {o} as select k, sum(n) from {s} group by k")
    assert "key_in_one_partition = 'true'" in reason
    topics.run(topics.source("n bigint, k string", name="one", key_in_one_partition="true"))
    topics.produce("t", [Record({"n": n, "k": "a"}) for n in range(4)])
    topics.run("create stream {o} as select k, sum(n) as s from {one} group by k")
    topics.run_job("o", max_rows=3 if topics.kafka.is_real else 4)  # a mock cannot cut a backlog by time
    assert [row["s"] for row in topics.data("o")] == [0, 1, 3, 6]


def test_columns_are_those_of_the_newest_messages(topics: Topics) -> None:
    topics.create(partitions=2)
    topics.produce("t", [Record({"n": 1, "x": 1.5, "k": "a", "o": {"a": 1}}, 1)])
    (result,) = topics.run(topics.source())
    assert "(n BIGINT, x DOUBLE, k STRING, o JSON)" in result["statement"]


def test_aborted_transactions_are_invisible(real_topics: Topics) -> None:
    topics = real_topics
    topics.create(partitions=2)
    writer = topics.transactional("t")
    for batch in range(6):
        writer.begin([Record({"n": batch * 10 + n}, n % 2, DAY + batch) for n in range(4)])
        (writer.abort if batch % 2 else writer.commit)()
    topics.run(topics.source("n bigint") + "create stream {o} as select n from {s}")
    topics.run_job("o", max_rows=3)
    assert sorted(row["n"] for row in topics.data("o")) == [0, 1, 2, 3, 20, 21, 22, 23, 40, 41, 42, 43]


def test_an_open_transaction_is_read_when_it_is_committed(real_topics: Topics) -> None:
    topics = real_topics
    topics.create()
    writer = topics.transactional("t")
    writer.begin([Record({"n": 1})])
    topics.produce("t", [Record({"n": 2})])
    topics.run(topics.source("n bigint") + "create stream {o} as select n from {s}")
    query = topics.query("o")
    query.drain()
    assert topics.data("o") == []
    writer.commit()
    wait_until(lambda: query.drain() == 0 and len(topics.data("o")) == 2)
    query.close()
    assert [row["n"] for row in topics.data("o")] == [1, 2]


def test_compacted_topics_have_gaps(real_topics: Topics) -> None:
    topics = real_topics
    topics.create(
        config={
            "cleanup.policy": "compact",
            "segment.ms": "1",
            "min.cleanable.dirty.ratio": "0.0",
            "max.compaction.lag.ms": "1",
        }
    )
    for n in range(8):
        records = [Record({"n": n}, key="a"), Record({"n": 10 + n}, key=f"b{n}")]
        topics.produce("t", [each._replace(at=DAY + 1000 * n) for each in records])
    wait_until(lambda: len(topics.consume("t")) < 16, within=60)
    topics.run(topics.source("n bigint") + "create stream {o} as select n from {s}")
    topics.run_job("o", max_rows=3)
    numbers = [row["n"] for row in topics.data("o")]
    assert set(numbers) <= set(range(8)) | set(range(10, 18))
    assert numbers[-1] == 17
    assert len(numbers) < 16


def test_records_that_retention_removed_are_said(real_topics: Topics) -> None:
    topics = real_topics
    name = topics.create()
    topics.produce("t", [Record({"n": n}) for n in range(10)])
    topics.run(topics.source("n bigint") + "create stream {o} as select n from {s}")
    query = topics.query("o", max_rows=3)
    query.batch()
    client = AdminClient({"bootstrap.servers": topics.kafka.brokers})
    for future in client.delete_records([TopicPartition(name, 0, 7)]).values():
        future.result(20)
    query.drain()
    query.close()
    assert [row["n"] for row in topics.data("o")] == [0, 1, 2, 7, 8, 9]
    (dead,) = topics.dead("o")
    assert (
        dead["reason"]
        == "partition 0, offsets 3 to 6: removed by the topic's retention before the job read them"
    )


def test_records_that_were_read_before_their_removal_are_not_said(
    real_topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queenspark.connectors.kafka.partition_reader._CHUNK_ROWS", 1)
    topics = real_topics
    name = topics.create()
    topics.produce("t", [Record("x" * 50_000) for _ in range(100)])
    few = {"kafka.fetch.message.max.bytes": "60000", "kafka.queued.max.messages.kbytes": "60"}
    options = KafkaOptions.of({"brokers": topics.kafka.brokers, "topic": name, **few})
    found: list[Any] = []
    for part in read_ranges(options, (Range(0, 0, 100),)):
        if not found:
            client = AdminClient({"bootstrap.servers": topics.kafka.brokers})
            for future in client.delete_records([TopicPartition(name, 0, 90)]).values():
                future.result(20)
        if isinstance(part, Gap):
            found += [part]
        else:
            found += [message.offset() for message in part.messages]
    (gap,) = [each for each in found if isinstance(each, Gap)]
    assert gap.end == 90
    assert [each for each in found if each != gap] == [*range(gap.start), *range(90, 100)]


def test_a_new_partition_is_read_from_its_start(real_topics: Topics, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queenspark.connectors.kafka.topic.METADATA_SECONDS", 0.0)
    topics = real_topics
    name = topics.create()
    topics.produce("t", [Record({"n": 0})])
    topics.run(topics.source("n bigint") + "create stream {o} as select n from {s}")
    query = topics.query("o")
    query.drain()
    client = AdminClient({"bootstrap.servers": topics.kafka.brokers})
    client.create_partitions([NewPartitions(name, 3)])[name].result(20)
    wait_until(lambda: len(client.list_topics(name, timeout=5).topics[name].partitions) == 3)
    topics.produce("t", [Record({"n": n}, n) for n in (1, 2)])
    wait_until(lambda: query.drain() == 0 and len(topics.data("o")) == 3)
    query.close()
    assert sorted(row["n"] for row in topics.data("o")) == [0, 1, 2]


@pytest.mark.parametrize("again", [False, True])
def test_a_topic_that_was_deleted_fails_its_job(
    real_topics: Topics, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    monkeypatch.setattr("queenspark.connectors.kafka.topic.METADATA_SECONDS", 0.0)
    topics = real_topics
    name = topics.create()
    topics.produce("t", [Record({"n": 0})])
    topics.run(topics.source("n bigint") + "create stream {o} as select n from {s}")
    query = topics.query("o")
    query.drain()
    client = AdminClient({"bootstrap.servers": topics.kafka.brokers})
    client.delete_topics([name])[name].result(20)
    wait_until(lambda: name not in client.list_topics(timeout=5).topics)
    if again:
        topics.create()
        topics.produce("t", [Record({"n": n}) for n in range(5)])
    with pytest.raises(ReadFailed) as caught:
        wait_until(lambda: query.drain() > 0)
    query.close()
    wanted = "was deleted and recreated" if again else "no longer exists"
    assert wanted in str(caught.value)
    assert name in str(caught.value)


def test_a_batch_is_as_large_as_it_may_be(topics: Topics) -> None:
    topics.create()
    topics.produce("t", [Record({"n": n, "x": "y" * 1000}, 0, DAY + n) for n in range(3000)])
    topics.run(
        topics.source("n bigint") + "create stream {o} as select count(*) as c from {s} window tumbling(1d)"
    )
    assert topics.run_job("o", max_rows=10_000, max_bytes=300_000) >= 9
